//! The GPU monitor with stand-ins for the vendors' tools.

use super::{Checkout, names};

/// Samples every 0.05 s, each with a header, the last one cut; or one sample.
const NVIDIA: &str = r#"
echo "$*" >> "$HOME/calls"
line='2026/11/30 10:00:00.000, 0, 700.00 W, 60, 1980 MHz, 2619 MHz, 99 %, 50 %'
for word in "$@"; do
    if [ "$word" = -l ]; then
        echo 'timestamp, index, power.draw [W]'
        while true; do echo "$line"; printf '%s' "${line:0:30}"; sleep 0.05; echo "${line:30}"; done
    fi
done
echo "last $line"
"#;

const AMD: &str = r#"
echo "$*" >> "$HOME/calls"
case "$*" in
*-w*) echo 'welcome'; while true; do echo 'timestamp,gpu,power'; echo '1700000000,0,500'; sleep 0.05; done ;;
'metric -E --csv') echo 'gpu,energy'; echo '0,1' ;;
'static --json') [ -z "$BROKEN" ] && echo '[]' || exit 3 ;;
esac
"#;

#[test]
fn nvidia_leaves_whole_lines_and_a_last_sample() {
    let checkout = Checkout::new();
    checkout.tool("nvidia-smi", NVIDIA);
    let script = "start_gpu_monitor --other --output m.csv --interval 1; echo \"$GPU_MONITOR_VENDOR $GPU_METRICS_CSV\"
        pid=$GPU_MONITOR_PID; until [ \"$(cat m.csv 2>&- | wc -l)\" -ge 3 ]; do sleep 0.02; done
        stop_gpu_monitor; echo \"[$GPU_MONITOR_PID$GPU_MONITOR_VENDOR] $?\"
        kill -0 $pid 2>/dev/null && echo alive; bash -c 'echo $GPU_METRICS_CSV'; stop_gpu_monitor; echo \"again $?\"";
    let ran = checkout.run(&[], script);
    ran.has(0, &["nvidia m.csv", "[] 0", "again 0", "lines in m.csv"]);
    assert!(!ran.stdout.contains("alive"), "{}", ran.all());
    let metrics = checkout.read("m.csv");
    let lines: Vec<&str> = metrics.lines().collect();
    assert_eq!(
        lines[0], "timestamp, index, power.draw [W]",
        "units stand in the header"
    );
    assert!(metrics.ends_with('\n'), "{metrics}");
    assert!(
        lines.last().expect("a line").starts_with("last 2026/11/30"),
        "{metrics}"
    );
    let whole = |line: &str| line.ends_with("99 %, 50 %");
    assert!(lines[1..].iter().all(|line| whole(line)), "{metrics}");
    let calls = checkout.read("home/calls");
    assert!(calls.contains("--query-gpu=timestamp,index,power.draw,temperature.gpu,clocks.current.sm,clocks.current.memory,utilization.gpu,utilization.memory --format=csv -l 1"), "{calls}");
    assert!(calls.contains("--format=csv,noheader"), "{calls}");
}

#[test]
fn amd_leaves_one_header_and_its_energy() {
    let checkout = Checkout::new();
    checkout.tool("amd-smi", AMD);
    let script = "start_gpu_monitor; until [ \"$(cat gpu_metrics.csv 2>&- | wc -l)\" -ge 3 ]; do sleep 0.02; done; stop_gpu_monitor";
    // A node's own nvidia-smi must not be found before the stand-in.
    let ran = checkout.run(&[], script);
    ran.has(0, &["started amd"]);
    let metrics = checkout.read("gpu_metrics.csv");
    assert!(
        metrics.starts_with("timestamp,gpu,power\n1700000000,0,500\n"),
        "{metrics}"
    );
    assert_eq!(metrics.matches("timestamp").count(), 1, "{metrics}");
    // A tick of 0.05 s over interval + 2 s.
    assert!(
        metrics.lines().count() > 20,
        "it ends 3 s after it is told to: {metrics}"
    );
    let expected = [
        "gpu_metrics.csv",
        "gpu_metrics_energy_end.csv",
        "gpu_metrics_energy_start.csv",
        "gpu_metrics_identity.json",
    ];
    assert_eq!(names(&checkout.file(""), "gpu_metrics"), expected);
    assert!(checkout.read("home/calls").contains("metric -p -c -t -u -w 1 --csv"));
}

#[test]
fn what_fails_leaves_no_file_and_stops_nobody() {
    let checkout = Checkout::new();
    checkout.tool("amd-smi", AMD);
    let script =
        "start_gpu_monitor --output x.csv; kill -KILL $GPU_MONITOR_PID; sleep 0.1; stop_gpu_monitor; echo \"is $?\"";
    checkout
        .run(&[("BROKEN", "1")], script)
        .has(0, &["no x_identity.json", "is 0"]);
    assert!(!checkout.file("x_identity.json").exists());
    assert!(checkout.file("x_energy_start.csv").exists());
    std::fs::remove_file(checkout.file("bin/amd-smi")).expect("it goes");
    let ran = checkout.run(
        &[],
        "start_gpu_monitor; echo \"is $? [$GPU_MONITOR_PID]\"; stop_gpu_monitor; echo \"is $?\"",
    );
    ran.has(0, &["nothing is monitored", "is 0 []", "is 0"]);
}

#[test]
fn a_monitor_ends_with_its_script() {
    let checkout = Checkout::new();
    checkout.tool("nvidia-smi", NVIDIA);
    let script = "start_gpu_monitor; echo \"pid $GPU_MONITOR_PID\"; while [ ! -s gpu_metrics.csv ]; do sleep 0.02; done; kill -KILL $$";
    let ran = checkout.run(&[], script);
    let pid = ran
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("pid "))
        .expect("a pid")
        .to_owned();
    crate::launch::support::assert_gone(&[pid]);
}

#[test]
fn amds_gpus_are_waited_for() {
    let checkout = Checkout::new();
    checkout.tool(
        "rocm-smi",
        "n=$(cat $HOME/n 2>/dev/null || echo 3); echo $((n - 1)) > $HOME/n
         echo \"GPU[0] : GPU Memory Allocated (VRAM%): 0\"; echo \"GPU[1] : GPU Memory Allocated (VRAM%): $((n * 10))\"",
    );
    let wait = |more: &[&str]| {
        let mut command = checkout.command("sweepctl", &[]);
        command
            .args(["library", "wait-amd-clean", "--pause", "0.01"])
            .args(more)
            .output()
            .expect("it runs")
    };
    let output = wait(&[]);
    let said = crate::support::stdout(&output);
    assert!(
        output.status.success() && said.contains("at 30%") && said.contains("free: the fullest is at 10%"),
        "{said}"
    );
    std::fs::write(checkout.file("home/n"), "9").expect("a file");
    assert_eq!(wait(&["--timeout", "0.005"]).status.code(), Some(1));
    std::fs::write(checkout.file("home/n"), "1").expect("a file");
    checkout
        .run(&[], "wait_for_amd_gpu_clean; echo \"is $?\"")
        .has(0, &["is 0"]);
}
