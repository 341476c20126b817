//! A command that goes on, whose lines are read as it prints them.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use super::until;

/// A command that watches; it is ended when it is dropped.
pub struct Program {
    pub child: Child,
    /// What it prints, while somebody reads it.
    pub lines: Option<io::Lines<BufReader<ChildStdout>>>,
    errors: Arc<Mutex<String>>,
}

impl Program {
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let errors = Arc::<Mutex<String>>::default();
        let kept = Arc::clone(&errors);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &(line + "\n");
            }
        });
        Self {
            child,
            lines: Some(BufReader::new(stdout).lines()),
            errors,
        }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        self.lines.as_mut().unwrap().next().unwrap().unwrap()
    }

    /// Waits until it has said a text on standard error.
    pub fn said(&self, text: &str) {
        until(text, || {
            let errors = self.errors.lock().unwrap();
            errors.contains(text).then_some(())
        });
    }

    /// All that it has said on standard error so far.
    pub fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// Waits for its end, and returns its code.
    pub fn end(&mut self) -> Option<i32> {
        until("the end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
