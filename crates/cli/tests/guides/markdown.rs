//! A reader of Markdown, as far as guides need it: fenced blocks, and the
//! commands in them.

/// A fenced block of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of its first line in the page, from 1.
    pub(crate) line: usize,
    /// What it is written in: the word after the fence.
    pub(crate) language: String,
    pub(crate) text: String,
}

/// All fenced blocks of a page. The indentation of a fence is taken from its
/// lines.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (index, line) in page.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                let indent = line.len() - line.trim_start().len();
                let block = Block {
                    line: index + 2,
                    language: language.trim().to_owned(),
                    text: String::new(),
                };
                open = Some((indent, block));
            }
            (Some(_), Some(_)) => blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), None) => {
                block.text.push_str(line.get(*indent..).unwrap_or_default());
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// A command of a block, and the comment behind it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) text: String,
    pub(crate) comment: Option<String>,
}

/// The commands of a block of shell. One may go on over several lines, each
/// ending in a backslash.
pub(crate) fn commands(text: &str) -> Vec<Command> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(" # ") {
            Some((command, comment)) => Command {
                text: command.trim_end().to_owned(),
                comment: Some(comment.trim().to_owned()),
            },
            None => Command {
                text: line.to_owned(),
                comment: None,
            },
        })
        .collect()
}

#[test]
fn fenced_blocks_are_read_with_their_language() {
    let page = "one\n```sh\na\n\nb\n```\ntwo\n  ```yaml\n  c:\n    d\n  ```\n";
    let block = |line, language: &str, text: &str| Block {
        line,
        language: language.to_owned(),
        text: text.to_owned(),
    };
    let expected = [block(3, "sh", "a\n\nb\n"), block(9, "yaml", "c:\n  d\n")];
    assert_eq!(blocks(page), expected);
}

#[test]
fn commands_are_lines_without_their_comments() {
    let text = "# first\na b   # c, d\n\ne \\\n  f\n";
    let command = |text: &str, comment: Option<&str>| Command {
        text: text.to_owned(),
        comment: comment.map(str::to_owned),
    };
    let expected = [command("a b", Some("c, d")), command("e    f", None)];
    assert_eq!(commands(text), expected);
}
