//! What launch scripts leave behind under the runner's names, before and after a job.

use super::support::{Host, benchmark, throughput};
use crate::eval::support::write_json;

/// A queue in a file, `id|state|name|comment` a line; a cancelled job is taken out.
const SQUEUE: &str = r#"cat "$HOST/queue""#;
const SCANCEL: &str = r#"
printf '%s\n' "$*" >> "$HOST/scancel.calls"
for word; do
    case $word in [0-9]*) sed -i "/^$word|/d" "$HOST/queue" ;; esac
done
"#;
/// Containers in a file, `id name` a line.
const DOCKER: &str = r#"
printf '%s\n' "$*" >> "$HOST/docker.calls"
case $1 in
ps) cat "$HOST/containers" ;;
rm) shift 2; for id; do sed -i "/^$id /d" "$HOST/containers"; done ;;
esac
"#;
const QUEUE: &str = "7|RUNNING|h200-x_0|(null)
8|RUNNING|h200-x_01|(null)
9|COMPLETED|h200-x_0|(null)
10|PENDING|own-h200-x_0-job|(null)
";
const CONTAINERS: &str = "aaa1 bmk-server-h200-x_0
aaa2 bmk-server-h200-x_01
aaa3 container_vllm_ci_m_9
aaa4 container_vllm_ci_m_8
aaa5 container_vllm_ci_m_79
aaa6 router_vllm_ci_m_7
aaa7 other_7
aaa8 bmk-server
";

fn host(cluster: &str) -> Host {
    let host = Host::new(cluster);
    host.tool("squeue", SQUEUE);
    host.tool("scancel", SCANCEL);
    host.tool("docker", DOCKER);
    std::fs::write(host.file("queue"), QUEUE).expect("a file");
    std::fs::write(host.file("containers"), CONTAINERS).expect("a file");
    host
}

#[test]
fn a_release_ends_what_bears_exactly_the_runners_names() {
    let host = host("{ backend: script, uses: [slurm, docker] }");
    let done = host.release(&[]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let lines = |name: &str| -> Vec<String> {
        let text = host.read(name);
        text.lines()
            .map(|line| line.split(['|', ' ']).next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(lines("queue"), ["8", "9", "10"]);
    assert_eq!(lines("containers"), ["aaa2", "aaa4", "aaa5", "aaa7", "aaa8"]);
    for what in [
        "Slurm job 7",
        "bmk-server-h200-x_0",
        "container_vllm_ci_m_9",
        "router_vllm_ci_m_7",
    ] {
        assert!(done.stdout.contains(what), "{what}: {}", done.stdout);
    }
    let again = host.release(&[]);
    assert!(again.stdout.contains("\"released\":[]"), "{}", again.stdout);
}

#[test]
fn a_cluster_names_what_its_scripts_start() {
    let names = "job-names: ['own-{runner-name}-job'], container-names: [bmk-server]";
    let host = host(&format!("{{ backend: script, uses: [slurm, docker], {names} }}"));
    assert_eq!(host.release(&[]).code, Some(0));
    assert!(!host.read("queue").contains("own-"), "{}", host.read("queue"));
    assert!(host.read("queue").starts_with("7|"), "{}", host.read("queue"));
    assert!(!host.read("containers").contains("aaa8"));
    assert!(host.read("containers").contains("aaa1"));
}

#[test]
fn nothing_is_asked_of_what_a_cluster_does_not_use() {
    let host = host("{ backend: script }");
    assert_eq!(host.release(&[]).code, Some(0));
    assert_eq!(host.read("queue"), QUEUE);
    assert!(!host.file("docker.calls").exists());
    for (fields, part) in [
        ("uses: [slrm]", "slurm"),
        ("uses: [docker], job-names: [a]", "job-names"),
        ("uses: [slurm], job-names: ['{runner}']", "no name of a job"),
    ] {
        let refused = self::host(&format!("{{ backend: script, {fields} }}")).release(&[]);
        assert_eq!(refused.code, Some(1), "{fields}");
        assert!(refused.stderr.contains(part), "{fields}: {}", refused.stderr);
    }
}

#[test]
fn a_job_is_released_before_and_after_it() {
    let host = host("{ backend: script, uses: [slurm, docker] }");
    // What the job itself starts, and never ends.
    host.script(
        r#"grep -q '^7|' "$HOST/queue" && exit 9
echo '11|RUNNING|h200-x_0|(null)' >> "$HOST/queue"
echo 'bbb1 bmk-server-h200-x_0' >> "$HOST/containers"
cp saved.json "$RESULT_FILENAME.json""#,
    );
    write_json(host.at(), "saved.json", &benchmark(serde_json::json!({})));
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!host.read("queue").contains("11|"), "{}", host.read("queue"));
    assert!(!host.read("containers").contains("bbb1"));
    assert!(host.read("queue").contains("8|RUNNING"), "{}", host.read("queue"));
}

#[test]
fn a_slurm_that_does_not_answer_is_said() {
    let host = host("{ backend: script, uses: [slurm] }");
    host.tool("squeue", "echo down >&2; exit 1");
    let done = host.release(&[]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("the queue cannot be read"), "{}", done.stderr);
}
