//! A real Slurm of one node on loopback: started by the first test that needs it, gone with the test process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The cluster.
pub struct Cluster {
    /// Its configuration.
    pub conf: PathBuf,
    /// Its end is that of the cluster: the script that keeps it waits for the end of its standard input.
    _keeper: Child,
}

/// The one cluster of this test process.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start)
}

impl Cluster {
    fn start() -> Self {
        for tool in ["munged", "slurmctld", "slurmd", "sbatch"] {
            let found = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
            let there = found.iter().any(|folder| Path::new(folder).join(tool).exists());
            assert!(
                there,
                "`{tool}` is missing: install it with `apt-get install slurm-wlm munge`"
            );
        }
        let folder = tempfile::Builder::new()
            .prefix("slurm-")
            .tempdir()
            .expect("a folder")
            .keep();
        let conf = folder.join("slurm.conf");
        std::fs::write(&conf, configuration(&folder)).expect("a file");
        let mut keeper = Command::new("bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh"))
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It outlives the test process by moments, and nobody shall wait for it.
            .stderr(Stdio::null())
            .spawn()
            .expect("bash runs");
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut output = BufReader::new(keeper.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = output.read_line(&mut line);
            let _ = sender.send(line);
        });
        let said = receiver.recv_timeout(Duration::from_secs(30)).unwrap_or_default();
        assert_eq!(said, "ready\n", "the cluster did not start:\n{}", logs(&folder));
        Self { conf, _keeper: keeper }
    }

    /// A command of Slurm's, of this cluster.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &self.conf).env("LC_ALL", "C");
        command
    }

    /// What a command prints.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self
            .command(program)
            .args(arguments)
            .output()
            .expect("Slurm's commands run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The ids of the jobs of a name that are not over.
    pub fn alive(&self, name: &str) -> Vec<String> {
        let queue = self.ask("squeue", &["-h", "-o", "%i|%j"]);
        let named = queue.lines().filter_map(|line| line.split_once('|'));
        named
            .filter(|(_, found)| *found == name)
            .map(|(id, _)| id.to_owned())
            .collect()
    }

    /// Waits for a job of a name, and gives its id.
    pub fn wait_for(&self, name: &str) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(id) = self.alive(name).pop() {
                return id;
            }
            assert!(Instant::now() < end, "no job `{name}` came");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Two ports that are free.
fn ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// `n1` runs here and has room for all tests at once. Nobody answers for `n2`: what waits for it waits for ever.
fn configuration(folder: &Path) -> String {
    let [controller, node] = ports();
    let host = Command::new("hostname").arg("-s").output().expect("hostname runs");
    let host = String::from_utf8_lossy(&host.stdout).trim().to_owned();
    let user = Command::new("id").arg("-un").output().expect("id runs");
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let folder = folder.display();
    format!(
        "ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
NodeName=n2 NodeHostname=nowhere NodeAddr=127.0.0.1 Port=1 CPUs=4 State=DOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP
PartitionName=empty Nodes=n2 MaxTime=INFINITE State=UP
"
    )
}

fn logs(folder: &Path) -> String {
    let names = ["munged.out", "slurmctld.out", "slurmd.out"];
    names
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap_or_default())
        .join("\n")
}
