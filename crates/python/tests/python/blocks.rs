use mle_star_python::{Block, BlockKind, blocks};

fn outline(source: &str) -> String {
    let pieces = blocks(source).into_iter().map(|Block { text, first_line, last_line, kind }| {
        format!("{first_line}-{last_line} {kind:?}\n{text}\n")
    });
    pieces.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_script_splits_as_a_reader_would() {
    let source = "\
#!/usr/bin/env python

import os
import numpy as np  # arrays

from sklearn import svm

SEED = 1
np.random.seed(SEED)
# Load.
train = load('train.csv')
test = load(
    'test.csv',
)

# A floating remark.

# Scales
# the data.
@cached
def scale(x):
    # inside

    return x / 2
class Model:
    pass  # nothing

for fold in folds:
    fit(fold)
print('done'); print('really')  # end
";
    insta::assert_snapshot!(outline(source), @r"
    3-6 Imports
    import os
    import numpy as np  # arrays

    from sklearn import svm

    8-9 Statements
    SEED = 1
    np.random.seed(SEED)

    10-14 Statements
    # Load.
    train = load('train.csv')
    test = load(
        'test.csv',
    )

    18-24 Function
    # Scales
    # the data.
    @cached
    def scale(x):
        # inside

        return x / 2

    25-26 Class
    class Model:
        pass  # nothing

    28-30 Statements
    for fold in folds:
        fit(fold)
    print('done'); print('really')  # end
    ");
}

#[test]
fn a_string_over_several_lines_stays_whole() {
    let source = "x = '''\n\n# not a comment\n'''\ny = 1\n";
    let whole = Block {
        text: "x = '''\n\n# not a comment\n'''\ny = 1",
        first_line: 1,
        last_line: 5,
        kind: BlockKind::Statements,
    };
    assert_eq!(blocks(source), [whole]);
}

#[test]
fn a_source_that_does_not_parse_is_one_piece() {
    let whole = Block {
        text: "  x = = 1\n\ny = 2",
        first_line: 2,
        last_line: 4,
        kind: BlockKind::Statements,
    };
    assert_eq!(blocks("\n  x = = 1\n\ny = 2\n\n"), [whole]);
}

#[test]
fn nothing_has_no_pieces() {
    for source in ["", "\n \n", "# a comment\n"] {
        assert_eq!(blocks(source), [], "{source}");
    }
}
