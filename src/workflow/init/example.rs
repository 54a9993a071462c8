//! An example of a launch path: what a starter says of hardware that it is told.

use crate::backends::container::Runtime;
use crate::config::clusters::Gpus;
use crate::config::problem::{Problem, nearest_of_all};

/// GPU nodes by name. A node's number of GPUs and a GPU's memory in GB are those of its maker's product pages: NVIDIA
/// HGX and DGX H100, H200, B200 and B300, GB200 and GB300 NVL72 (a node is one compute tray), AMD Instinct MI300X,
/// MI325X, MI350X and MI355X platforms.
const HARDWARE: [Hardware; 10] = [
    Hardware::new("h100", Gpus::Nvidia, 8, 80),
    Hardware::new("h200", Gpus::Nvidia, 8, 141),
    Hardware::new("b200", Gpus::Nvidia, 8, 180),
    Hardware::new("b300", Gpus::Nvidia, 8, 288),
    Hardware::new("gb200", Gpus::Nvidia, 4, 186),
    Hardware::new("gb300", Gpus::Nvidia, 4, 279),
    Hardware::new("mi300x", Gpus::Amd, 8, 192),
    Hardware::new("mi325x", Gpus::Amd, 8, 256),
    Hardware::new("mi350x", Gpus::Amd, 8, 288),
    Hardware::new("mi355x", Gpus::Amd, 8, 288),
];

/// A kind of node.
#[derive(Debug, Clone, Copy)]
struct Hardware {
    name: &'static str,
    gpus: Gpus,
    per_node: u64,
    memory_gb: u64,
}

impl Hardware {
    const fn new(name: &'static str, gpus: Gpus, per_node: u64, memory_gb: u64) -> Self {
        Self {
            name,
            gpus,
            per_node,
            memory_gb,
        }
    }
}

/// An engine that the example serves with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// vLLM
    Vllm,
    /// SGLang
    Sglang,
    /// TensorRT-LLM
    Trt,
    /// ATOM
    Atom,
}

impl Engine {
    /// Every value with its name as a config's `framework`.
    pub(crate) const CHOICES: [(&'static str, Self); 4] = [
        ("vllm", Self::Vllm),
        ("sglang", Self::Sglang),
        ("trt", Self::Trt),
        ("atom", Self::Atom),
    ];

    fn name(self) -> &'static str {
        Self::CHOICES
            .iter()
            .find(|(_, own)| *own == self)
            .map_or("", |(name, _)| *name)
    }

    /// Its public image for GPUs; `None` where there is none.
    fn image(self, hardware: &Hardware) -> Option<&'static str> {
        let old = hardware.name == "mi300x" || hardware.name == "mi325x";
        match (self, hardware.gpus) {
            (Self::Vllm, Gpus::Nvidia) => Some("vllm/vllm-openai:v0.25.1"),
            (Self::Vllm, Gpus::Amd) => Some("vllm/vllm-openai-rocm:v0.25.1"),
            (Self::Sglang, Gpus::Nvidia) => Some("lmsysorg/sglang:v0.5.16-cu130"),
            (Self::Sglang, Gpus::Amd) if old => Some("lmsysorg/sglang:v0.5.16-rocm720-mi30x"),
            (Self::Sglang, Gpus::Amd) => Some("lmsysorg/sglang:v0.5.18-rocm720-mi35x"),
            (Self::Trt, Gpus::Nvidia) => Some("nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc14"),
            (Self::Atom, Gpus::Amd) => {
                Some("rocm/atom:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom0.1.4_20260612")
            }
            _ => None,
        }
    }
}

/// What the example is for.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    hardware: &'static Hardware,
    runtime: &'static str,
    engine: Engine,
    image: &'static str,
}

impl Example {
    /// An example for hardware by its name.
    ///
    /// # Errors
    /// Hardware that is not known, and an engine that has no image for it.
    pub(crate) fn new(hardware: &str, runtime: Runtime, engine: Engine) -> Result<Self, Problem> {
        let known = HARDWARE.iter().find(|known| known.name == hardware);
        let Some(hardware) = known else {
            let names = HARDWARE.iter().map(|known| known.name);
            let problem = Problem::file("", format!("`{hardware}` is no hardware that an example is known for"));
            return Err(problem.hint(nearest_of_all(hardware, names)));
        };
        let image = engine.image(hardware).ok_or_else(|| {
            let fit = Engine::CHOICES.iter().filter(|(_, e)| e.image(hardware).is_some());
            let names: Vec<&str> = fit.map(|(name, _)| *name).collect();
            let message = format!("there is no public image of `{}` for {}", engine.name(), hardware.name);
            Problem::file("", message).hint(format!("choose one of {}", names.join(", ")))
        })?;
        let runtime = Runtime::CHOICES.iter().find(|(_, own)| *own == runtime);
        Ok(Self {
            hardware,
            runtime: runtime.map_or("docker", |(name, _)| name),
            engine,
            image,
        })
    }

    /// The runner label and its runner, as the runners file of the starter.
    #[must_use]
    pub(crate) fn runners(&self) -> String {
        let Hardware {
            name,
            per_node,
            memory_gb,
            ..
        } = *self.hardware;
        format!(
            "# yaml-language-server: $schema=schemas/runners.schema.json
#
# Which self-hosted runners a label stands for. A runner is named `<fleet>_<nn>`; this one is registered as `{name}_00`.
labels:
  # {per_node} GPUs with {memory_gb} GB each.
  {name}: [{name}_00]

# What the nodes behind a label have. Offloading a KV cache and jobs on many nodes need to know it: write the memory of
# the host that jobs may take, which `free -m` shows, less what the system needs.
hardware: {{}}
  # {name}: {{ available-cpu-dram-mib: 1_966_080, gpus-per-node: {per_node} }}
"
        )
    }

    /// What starts jobs on that runner, as the clusters file of the starter.
    #[must_use]
    pub(crate) fn clusters(&self) -> String {
        let gpus = Gpus::CHOICES
            .iter()
            .find(|(_, own)| *own == self.hardware.gpus)
            .map_or("none", |(name, _)| name);
        format!(
            "# yaml-language-server: $schema=schemas/clusters.schema.json
#
# What starts a job on a runner: a container of the row's own image on the runner's host. Without a launch script of the
# repository's own, `runners/launch_{name}.sh`, the server is the one of the row's engine in engines.yaml.
clusters:
  {name}:
    backend: container
    runtime: {runtime}
    gpus: {gpus}
    # The hub's cache, so that weights are fetched once.
    mounts:
    - {{ host: /var/cache/huggingface, container: /root/.cache/huggingface }}
    shm-size: 64g
    network: host
    # A job that prints nothing for so long hangs.
    idle-minutes: 60
",
            name = self.hardware.name,
            runtime = self.runtime,
        )
    }

    /// The key of its config.
    #[must_use]
    pub(crate) fn key(&self) -> String {
        format!("qwen3-8b-{}-{}", self.hardware.name, self.engine.name())
    }

    /// The master file of the starter: one entry.
    #[must_use]
    pub(crate) fn master(&self) -> String {
        format!(
            "# yaml-language-server: $schema=schemas/master.schema.json
#
# What is measured. Add a config for each deployment; see `sweepctl explain` for what of it is evaluated.
# An open model that one GPU holds: 8 billion parameters of 2 bytes.
{key}:
  image: {image}
  model: Qwen/Qwen3-8B
  model-prefix: qwen3-8b
  precision: bf16
  framework: {engine}
  runner: {hardware}
  multinode: false
  scenarios:
    fixed-seq-len:
      - {{ isl: 8192, osl: 1024, search-space: [{{ tp: 1, conc-list: [4, 16] }}] }}
",
            key = self.key(),
            image = self.image,
            engine = self.engine.name(),
            hardware = self.hardware.name,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hardware_has_an_engine() {
        for hardware in &HARDWARE {
            let fits = Engine::CHOICES
                .iter()
                .filter(|(_, engine)| Example::new(hardware.name, Runtime::Docker, *engine).is_ok());
            assert_eq!(fits.count(), 3, "{}", hardware.name);
        }
        let unknown = Example::new("h1000", Runtime::Docker, Engine::Vllm).expect_err("a refusal");
        assert!(unknown.hint.is_some_and(|hint| hint.contains("h100")));
    }
}
