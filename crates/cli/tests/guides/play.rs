//! Plays a guide: runs its commands in their order as they are printed, and
//! compares what it prints with what they printed.
//!
//! | block | is |
//! |---|---|
//! | `sh` | run, line by line; each command succeeds, and prints the text of its comment, up to a comma or a colon |
//! | `text`, `json` | in the output of the command before it |
//! | `yaml` | a file that `trunkline validate` takes |
//!
//! Where a block or a command is something else, a [`Rule`] says what. A block
//! that is neither run nor compared has a rule with its reason.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use std::{fs, thread};

use interop::Script;

use crate::compare::{is_excerpt, shows};
use crate::markdown::{Block, Command, blocks, commands};
use crate::stage::{Stage, root};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// How much of the output of each running command a failure shows.
const TAIL: usize = 10;

/// What to do with the next command or block that begins like this. Rules are
/// used up in their order.
pub(crate) type Rule = (&'static str, How);

/// How a command or a block differs from others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// The command prints these texts.
    Prints(&'static [&'static str]),
    /// The command ends with this code.
    Exits(i32),
    /// The command goes on, and prints this text when it is ready.
    Starts(&'static str),
    /// The command that runs and begins like this is stopped before.
    After(&'static str),
    /// The block is in the output of the running command that begins like this;
    /// these texts of it differ from run to run.
    Of(&'static str, &'static [&'static str]),
    /// The same for each line of the block, in any order: what happens at the
    /// same time has none.
    LinesOf(&'static str, &'static [&'static [&'static str]]),
    /// The block is an excerpt of this file.
    Excerpt(&'static str),
    /// The block is valid below this text.
    Under(&'static str),
    /// The block is this file, which later commands use.
    SavedAs(&'static str),
    /// The block is a file of settings.
    Settings,
    /// The block or command is left out, for this reason.
    LeftOut(&'static str),
    /// The reader has run this command before.
    Before(&'static str),
}

/// The state of a guide that is played.
struct Play {
    stage: Stage,
    rules: VecDeque<Rule>,
    /// Commands that go on, by their text.
    running: Vec<(String, Script)>,
    /// Aliases and variables that the guide sets.
    setup: String,
    /// The last command that ended, and what it printed.
    last: (String, String),
}

/// Plays a page of the tree.
pub(crate) fn play(page: &str, rules: &[Rule]) {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut play = Play {
        stage: Stage::new(),
        rules: rules.iter().copied().collect(),
        running: Vec::new(),
        setup: "shopt -s expand_aliases\n".to_owned(),
        last: Default::default(),
    };
    for block in blocks(&text) {
        eprintln!("{page}:{}: {}", block.line, block.language);
        match block.language.as_str() {
            "sh" => commands(&block.text).iter().for_each(|one| play.run(one)),
            "text" | "json" => play.compare(&block),
            "yaml" => play.check_file(&block),
            language if language.starts_with("rust") => assert_doctest(page),
            _ => assert!(
                matches!(play.rule(&block.text).as_slice(), [How::LeftOut(_)]),
                "no rule for a block of {:?}",
                block.language
            ),
        }
    }
    assert!(play.rules.is_empty(), "not in {page}: {:?}", play.rules);
}

/// The Rust of a page is run as a doctest of the library, which includes it.
fn assert_doctest(page: &str) {
    let library = fs::read_to_string(root().join("crates/trunkline/src/lib.rs")).unwrap();
    let included = format!("#[doc = include_str!(\"../../../{page}\")]");
    assert!(library.contains(&included), "{page} is no doctest");
}

impl Play {
    /// Takes the rules for a command or block.
    fn rule(&mut self, text: &str) -> Vec<How> {
        let mut taken = Vec::new();
        while let Some((start, how)) = self.rules.front().copied() {
            if !text.starts_with(start) {
                break;
            }
            self.rules.pop_front();
            match how {
                How::Before(command) => self.run(&Command {
                    text: command.to_owned(),
                    comment: None,
                }),
                How::After(running) => self.stop(running),
                how => {
                    taken.push(how);
                    break;
                }
            }
        }
        taken
    }

    fn run(&mut self, command: &Command) {
        let text = command.text.as_str();
        eprintln!("$ {text}");
        if text.starts_with("alias ") || text.starts_with("export ") {
            self.setup += &self.stage.ports.replace(text);
            self.setup.push('\n');
            return;
        }
        match self.rule(text).first() {
            Some(How::LeftOut(reason)) => eprintln!("left out: {reason}"),
            Some(How::Starts(ready)) => self.start(text, ready),
            Some(How::Prints(texts)) => self.run_until(text, 0, texts),
            Some(How::Exits(code)) => self.run_until(text, *code, &[]),
            Some(other) => panic!("{other:?} is not for a command: {text}"),
            None => {
                let comment = command.comment.as_deref().unwrap_or_default();
                let said = comment.split([',', ':']).next().unwrap_or_default();
                self.run_until(text, 0, &[said]);
            }
        }
    }

    /// Runs a command until it prints what it should: what it asks about may
    /// take its time. One that fails is not run again.
    fn run_until(&mut self, text: &str, code: i32, texts: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (ended, output) = self.run_once(text);
            let complete = texts.iter().all(|text| output.contains(text));
            if ended == Some(code) && complete {
                self.last = (text.to_owned(), output);
                return;
            }
            assert!(
                ended == Some(code) && Instant::now() < deadline,
                "{text}\nended with {ended:?}, and printed\n{output}\nin place of {texts:?}\n{}",
                self.tell_running()
            );
            thread::sleep(PAUSE);
        }
    }

    fn run_once(&self, text: &str) -> (Option<i32>, String) {
        let line = self.setup.clone() + &self.stage.ports.replace(text);
        let mut script = Script::run("command", &mut self.stage.command(&line));
        let ended = script.finish(PATIENCE);
        (ended, self.stage.ports.restore(&script.text()))
    }

    /// Starts a command that goes on, and waits for a text.
    fn start(&mut self, text: &str, ready: &str) {
        self.start_until(text, &[ready]);
    }

    /// Starts a command that goes on, and waits for one of some texts.
    fn start_until(&mut self, text: &str, ready: &[&str]) {
        let line = text.trim_end_matches(['&', ' ']);
        let line = self.stage.ports.replace(&format!("exec env {line}"));
        let script = Script::run("running", &mut self.stage.command(&line));
        self.running.push((text.to_owned(), script));
        self.wait_for(text, |output| {
            ready.iter().any(|ready| output.contains(ready))
        });
    }

    /// Stops the newest running command that begins like this.
    fn stop(&mut self, start: &str) {
        let found = self
            .running
            .iter()
            .rposition(|(text, _)| text.starts_with(start));
        let (_, mut script) = self.running.remove(found.expect("a running command"));
        script.stop();
    }

    /// Waits for an output of the running command that begins like this.
    fn wait_for(&self, start: &str, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut running = self.running.iter().rev();
        let found = running.find(|(text, _)| text.starts_with(start));
        let (text, script) = found.expect("a running command");
        while !is_there(&self.stage.ports.restore(&script.text())) {
            assert!(
                Instant::now() < deadline,
                "{text}\nprinted\n{}",
                script.text()
            );
            thread::sleep(PAUSE);
        }
    }

    /// Compares a block with the output that it shows.
    fn compare(&mut self, block: &Block) {
        let rule = self.rule(&block.text);
        match rule.first() {
            Some(How::LeftOut(reason)) => return eprintln!("left out: {reason}"),
            Some(How::Of(start, varies)) => {
                return self.wait_for(start, |output| shows(output, &block.text, varies));
            }
            Some(How::LinesOf(start, varies)) => {
                let lines = block.text.lines().zip(*varies);
                return lines.for_each(|(line, varies)| {
                    self.wait_for(start, |output| shows(output, line, varies));
                });
            }
            Some(other) => panic!("{other:?} is not for a block that is shown"),
            None => {}
        }
        let deadline = Instant::now() + PATIENCE;
        while !shows(&self.last.1, &block.text, &[]) {
            let (command, output) = &self.last;
            assert!(
                Instant::now() < deadline,
                "{command}\nprinted\n{output}\nin place of\n{}",
                block.text
            );
            thread::sleep(PAUSE);
            self.last.1 = self.run_once(&self.last.0).1;
        }
    }

    /// Checks a block that is a file, or a part of one.
    fn check_file(&mut self, block: &Block) {
        let check = "trunkline validate block.yaml";
        match self.rule(&block.text).first() {
            Some(How::LeftOut(reason)) => eprintln!("left out: {reason}"),
            Some(How::Excerpt(file)) => {
                let text = fs::read_to_string(root().join(file)).unwrap();
                assert!(
                    is_excerpt(&text, &block.text),
                    "not in {file}:\n{}",
                    block.text
                );
            }
            Some(How::SavedAs(file)) => self.stage.write(file, &block.text),
            Some(How::Settings) => {
                self.stage.write("block.yaml", &block.text);
                let serve = "\"$TESTED\" serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
                    --settings block.yaml";
                // Ready, if the settings name where contents come from.
                self.start_until(serve, &["waiting for the first contents", "ready"]);
                self.stop(serve);
            }
            Some(How::Under(text)) => {
                self.stage
                    .write("block.yaml", &format!("{text}{}", block.text));
                self.run_until(check, 0, &[]);
            }
            Some(other) => panic!("{other:?} is not for a file"),
            None => {
                self.stage.write("block.yaml", &block.text);
                self.run_until(check, 0, &[]);
            }
        }
    }

    /// What the running commands printed, for a message.
    fn tell_running(&self) -> String {
        let tell = |(text, script): &(String, Script)| {
            let output = script.text();
            let lines: Vec<&str> = output.lines().rev().take(TAIL).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("$ {text}\n{}\n", lines.join("\n"))
        };
        self.running.iter().map(tell).collect()
    }
}
