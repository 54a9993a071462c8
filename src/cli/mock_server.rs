//! `sweepctl mock-server`: an OpenAI-compatible server without a GPU.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tempfile::NamedTempFile;

use super::output;
use crate::mock_server::{Server, Settings};

/// `mock-server`
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct MockServer {
    #[command(flatten)]
    settings: Settings,
    /// Write the port to this file once the server listens
    #[arg(long, value_name = "FILE", help_heading = "Serving")]
    port_file: Option<PathBuf>,
}

const HELP: &str = "\
How questions are answered:
  The question is the one of --answers that stands nearest the end of the last user message (or of the prompt). Without \
one, the last plain arithmetic expression in the text is computed; without that, the answer is 0.
  A reply ends in `#### 42`, or `The answer is (C).` where the answer is a letter. A prompt that mentions `####` or \
`\\boxed` gets its answer in that form.
  A chat request with `tools` is answered by a call, unless its `tool_choice` is `none`, or it ends in a tool's result: \
of the tool that the question names, else of the first, with the smallest arguments that fit its schema.
  The same seed and question always get the same answer, in any order and at any concurrency.
  A token is a word here: what white space separates.

Routes: /health, /v1/models, /v1/chat/completions, /v1/completions, /metrics

Example:
  sweepctl mock-server --port 8000 --answers test.jsonl --accuracy 0.9";

impl MockServer {
    /// Serves until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// Everything wrong with the answers files, an address that cannot be listened on, a port file that cannot be
    /// written.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let server = Server::bind(self.settings)?;
        let address = server.address();
        if let Some(file) = &self.port_file {
            write_whole(file, &format!("{}\n", address.port()))
                .with_context(|| format!("the port file `{}` cannot be written", file.display()))?;
        }
        output::write(format!("listening on http://{address}\n").as_bytes())?;
        server.run().context("the server broke")
    }
}

/// Writes a file so that a reader sees all of it or none.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
