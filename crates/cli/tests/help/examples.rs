//! Examples, taken out of the help of all commands.

use std::collections::BTreeSet;

use crate::support::{good, run};

/// One example.
pub(crate) struct Example {
    /// The command whose help it is in.
    pub(crate) command: String,
    /// The line, without what is said of it.
    pub(crate) text: String,
}

impl Example {
    /// What one that goes on prints when it is at work.
    pub(crate) fn expected(&self) -> &'static str {
        let asks_control_plane = ["--server", "--bootstrap"];
        let has = |flag: &&str| self.text.contains(*flag);
        match self.text.contains("trunkline watch") && asks_control_plane.iter().any(has) {
            true if has(&"--tree") => "rds/routes version",
            true => "added",
            false => "\n",
        }
    }

    /// Returns whether it goes on until it is stopped.
    pub(crate) fn is_endless(&self) -> bool {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let flags = ["--watch", "-w", "--lease"];
        let commands = [
            "serve",
            "watch",
            "replay",
            "demo",
            "mcp source",
            "mcp watch",
        ];
        if words.contains(&"--once") {
            return false;
        }
        let runs = |command: &&str| self.text.contains(&format!("trunkline {command}"));
        words.iter().any(|word| flags.contains(word)) || commands.iter().any(runs)
    }
}

/// The names of all commands, by the help of the program.
pub(crate) fn commands() -> Vec<String> {
    let help = good(&run(&["--help"]));
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    // What is said of a command may go on in the next line.
    let lines = lines.filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help").map(str::to_owned);
    names.collect()
}

/// The examples of all commands. They follow the word `Example`, and are
/// indented.
pub(crate) fn all_examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for command in commands() {
        let mut seen = BTreeSet::new();
        for flag in ["--help", "-h"] {
            let help = good(&run(&[&command, flag]));
            let block = help.lines().skip_while(|line| !line.starts_with("Example"));
            let indented = block.filter(|line| line.starts_with("  "));
            for line in indented.filter(|line| line.contains("trunkline ")) {
                let text = line.trim().split("  ").next().unwrap().to_owned();
                if seen.insert(text.clone()) {
                    let command = command.clone();
                    examples.push(Example { command, text });
                }
            }
        }
    }
    examples
}
