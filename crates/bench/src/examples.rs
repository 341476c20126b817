//! What `--help` says after the flags.

/// For `-h`: the three things to begin with.
pub const SHORT_EXAMPLES: &str = "\
Examples:
  trunkline bench --clients 1000 --resources 5000              a server of its own
  trunkline bench 10.0.0.7:18000 --driver none --clients 50    any server, with what it has
  trunkline bench 10.0.0.7:18000 --driver command=./put.sh     any server, with changes

More with --help.";

/// For `--help`: one for each thing that can be measured.
pub const EXAMPLES: &str = "\
Examples:
  A server of its own, and what no server on this HTTP/2 stack can beat:
    trunkline bench --clients 1000 --resources 5000
    trunkline bench --clients 1000 --resources 5000 --floor

  A control plane of yours, whatever it is. First with what it has; then with contents and changes
  that a program of yours puts into it, and its CPU and memory; or the admin API of Trunkline:
    trunkline bench 10.0.0.7:18000 --driver none --clients 50
    trunkline bench 127.0.0.1:18000 --driver command=./put.sh --pid $(pgrep my-server)
    trunkline bench 127.0.0.1:18000 --driver admin=http://127.0.0.1:18001 --pid $(pgrep trunkline)

  Behind TLS, with a certificate of the clients:
    trunkline bench xds.test:443 --driver none --tls-ca ca.pem --tls-cert c.pem --tls-key k.pem

  As Envoy asks: clusters, and the endpoints that they lead to, of which one changes at a time:
    trunkline bench --types cds,eds --change eds --mode sotw

  Eight variants of each resource, for clients of fifty categories; only those that a variant is for
  should hear of its changes:
    trunkline bench --variants 8 --categories 50 --clients 5000 --light --connections 100

  A quarter of the changes are removals:
    trunkline bench --removals 0.25

  Five more clients reject a tenth of the changes, and one never reads: do others notice?
    trunkline bench --nackers 5 --nack-part 0.1 --slow-readers 1

  All clients lose their connections at once, and a tenth of the contents changes meanwhile:
    trunkline bench --clients 2000 --reconnect-storm 1 --changed-meanwhile 0.1

The CPU of the server is the main figure; times on a machine that is shared say little. What clients
receive is checked: the program fails if any of it was wrong.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Options;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        _options: Options,
    }

    #[test]
    fn every_example_is_a_command() {
        let lines = EXAMPLES.lines().chain(SHORT_EXAMPLES.lines());
        let commands = lines.filter_map(|line| line.trim().strip_prefix("trunkline bench "));
        let mut count = 0;
        for command in commands {
            // What is said of it stands apart.
            let flags = command.split("   ").next().unwrap_or_default();
            let flags = flags.replace("$(pgrep my-server)", "1");
            let flags = flags.replace("$(pgrep trunkline)", "1");
            let parsed = Cli::try_parse_from(["bench"].into_iter().chain(flags.split_whitespace()));
            assert!(parsed.is_ok(), "{command}: {:?}", parsed.err());
            count += 1;
        }
        assert!(count > 10, "{count}");
    }
}
