//! The binary: parse, run, map an error to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    sweepctl::cli::main()
}
