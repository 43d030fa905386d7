//! Arguments in, exit code out.

fn main() -> std::process::ExitCode {
    reminderd::cli::main()
}
