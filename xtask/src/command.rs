//! The table of commands, and the choice of one from the command line.

use lexopt::Arg;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use crate::{
    api, attack, bench, crash, deny, deps, fuzz, mcp, mutants, peers, release, rules, setup, sim,
    store, test, tidy, traffic,
};

/// One command of `cargo xtask`.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// What may follow the name.
    usage: &'static str,
    about: &'static str,
    run: fn(&Workspace, lexopt::Parser) -> Result<()>,
}

/// Every command; a new one is a file and a line here.
pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "[--only PART]... [--list]",
        about: "everything that must hold before a change is taken",
        run: test::command,
    },
    Command {
        name: "setup",
        usage: "",
        about: "install the real peers (Envoy, gRPC) that interop tests talk to",
        run: |workspace, args| {
            no_more(args)?;
            setup::run(workspace)
        },
    },
    Command {
        name: "deps",
        usage: "",
        about: "check which crate may depend on which, and that core stays pure",
        run: |workspace, args| {
            no_more(args)?;
            deps::run(workspace)
        },
    },
    Command {
        name: "tidy",
        usage: "",
        about: "check the habits of the tree that no compiler checks",
        run: |workspace, args| {
            no_more(args)?;
            tidy::run(workspace)
        },
    },
    Command {
        name: "bench",
        usage: "[engine|servers|peers|page]... [--only FIGURE,...] [--repeats N] [--quick]",
        about: "what the engine and whole servers cost, beside a floor and peers; writes docs/benchmarks.md",
        run: bench::command,
    },
    Command {
        name: "mcp",
        usage: "",
        about: "what a source of collections costs with 100 000 resources; see docs/mcp.md",
        run: |workspace, args| {
            no_more(args)?;
            mcp::command(workspace)
        },
    },
    Command {
        name: "attack",
        usage: "[soak [--minutes N] [--seed N]] [--only NAME]... [--seconds N] [--page] [--list]",
        about: "attack the server while a victim looks on; --page writes the table of docs/security.md",
        run: attack::command,
    },
    Command {
        name: "crash",
        usage: "[--rounds N]",
        about: "kill a server under load again and again, and look whether all that it acknowledged is there",
        run: crash::command,
    },
    Command {
        name: "store",
        usage: "[--in DIR]",
        about: "what it costs to keep contents: one writer, 64 writers, a million virtual hosts",
        run: store::command,
    },
    Command {
        name: "sim",
        usage: "[--seeds N] [--from SEED] [--only KIND] [--tell]",
        about: "simulated worlds with faults; --tell prints what happens in a seed that fails",
        run: sim::command,
    },
    Command {
        name: "fuzz",
        usage: "[TARGET]... [--seconds N] [--list]",
        about: "feed what reads a peer's words with any input, each target for a minute or N seconds",
        run: fuzz::command,
    },
    Command {
        name: "traffic",
        usage: "[--requests N] [--seed S] | steps",
        about: "10000 random requests, answered by a real Envoy and by trunkline-traffic; \
                steps: the instructions of a match and a pick (needs valgrind)",
        run: traffic::command,
    },
    Command {
        name: "peers",
        usage: "",
        about: "gRPC in Go and Java, whose server changes and restarts under load (needs Go, or Java and Maven)",
        run: |workspace, args| {
            no_more(args)?;
            peers::run(workspace)
        },
    },
    Command {
        name: "rules",
        usage: "[--check]",
        about: "write docs/rules.md: which rule is shown by which scenario or test",
        run: rules::command,
    },
    Command {
        name: "api",
        usage: "[--check]",
        about: "write docs/api: the public API of the library and of core, one line for each item",
        run: api::command,
    },
    Command {
        name: "release",
        usage: "[TARGET]...",
        about: "static binaries for x86-64 and arm64, tried as far as this machine can; needs their Rust targets",
        run: release::command,
    },
    Command {
        name: "deny",
        usage: "[advisories|bans|licenses|sources]...",
        about: "check licences and known faults of dependencies (needs cargo-deny)",
        run: deny::command,
    },
    Command {
        name: "mutants",
        usage: "[--of core|traffic] [--sample N] [--seed S] [--jobs N | --in-place] [-f FILE-GLOB]...",
        about: "break a crate at random places and see whether a test fails (needs cargo-mutants)",
        run: mutants::command,
    },
];

/// Runs the command that the arguments name.
pub(crate) fn run(mut args: lexopt::Parser) -> Result<()> {
    let name = match args.next()? {
        Some(Arg::Value(name)) => name.to_string_lossy().into_owned(),
        None | Some(Arg::Short('h') | Arg::Long("help")) => {
            help();
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        help();
        return Err(Failure::new(format!("there is no command `{name}`")));
    };
    (command.run)(&Workspace::find()?, args)
}

/// Reads the flag of a command that writes a file, or with `--check` says whether
/// it is current.
pub(crate) fn check_flag(mut args: lexopt::Parser) -> Result<bool> {
    let mut check = false;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("check") => check = true,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(check)
}

/// For commands without arguments: says so when there are some.
fn no_more(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => Ok(()),
        Some(arg) => Err(arg.unexpected().into()),
    }
}

fn help() {
    println!("cargo xtask <command>\n");
    for command in COMMANDS {
        println!("  {} {}", command.name, command.usage);
        println!("      {}", command.about);
    }
}
