//! Commands that an agent at work really types.

use mle_star_policy::Verdict;

use crate::ground::Ground;

pub(crate) const ALLOWED: &[&str] = &[
    "ls",
    "ls -la",
    "ls ../",
    "ls -la ../victim input/ 2>/dev/null",
    "pwd && ls -la && cat solution.py | head -50",
    "cat input/train.csv | head -5",
    "head -n 5 ROOT/data/train.csv",
    "wc -l input/*.csv",
    "du -sh input/* | sort -h | tail -3",
    "df -h . && free -g && nproc",
    "nvidia-smi || true",
    "which python python3 2>&1",
    "python --version; pip --version",
    "pip list | grep -i -E 'lightgbm|xgboost|sklearn'",
    "pip show pandas",
    "python -m pip list",
    "python solution.py",
    "python solution.py 2>&1 | tail -20",
    "python3 -u solution.py > logs/run.txt 2>&1",
    "timeout 600 python solution.py 2>&1 | tee logs/out.txt | tail -5",
    "time python solution.py",
    "nohup python solution.py > logs/out.txt 2>&1 &",
    "python solution.py & wait; echo done",
    "python solution.py & P=$!; sleep 1; kill $P",
    "CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=4 python solution.py --seed 42 --lr 1e-3",
    "export PYTHONUNBUFFERED=1; python solution.py",
    "python solution.py --data input/train.csv --output final/submission.csv",
    "python solution.py ROOT/data/train.csv",
    "python -c 'import pandas as pd; print(pd.read_csv(\"input/train.csv\").describe())'",
    "python -c \"import torch; print(torch.cuda.is_available())\"",
    "python -c \"import pandas as pd; pd.DataFrame().to_csv('final/submission.csv', index=False)\"",
    "python -c \"open('logs/x.txt', 'w').write('../victim')\"",
    "python -c \"s = 'a-b'.replace('-', '/'); print(s)\"",
    "python - <<'EOF'\nimport pandas as pd\ndf = pd.read_csv('input/train.csv')\nfor i in range(3):\n    df.to_csv(f'logs/fold_{i}.csv')\nEOF",
    "python3 << EOF\nprint($((1 + 2)))\nEOF",
    "python -m pytest -q tests 2>&1 | tail -3",
    "python -m json.tool < train.json",
    "python -m py_compile solution.py && echo ok",
    "cat > x.py <<'EOF'\nimport os\nprint(os.listdir('..'))\n$(this is text)\nEOF",
    "cat > src/model.py << 'EOF' && python src/model.py | tail -3\nprint('hi')\nEOF",
    "cat <<EOF >> notes.txt\nscore: $(date +%s)\nEOF",
    "mkdir -p final && cp train.csv final/",
    "mkdir -p a/{b,c}/d && touch a/{b,c}/d/file{1..3}.txt",
    "cp -r src backup && rm -rf backup",
    "cp ROOT/data/train.csv .",
    "cp input/train.csv final/train_copy.csv",
    "mv train.csv src/ && mv src/train.csv .",
    "rm -f *.pyc && rm -rf __pycache__ src/__pycache__",
    "rm -rf ./final/*",
    "rm way_out",
    "rm -f ROOT/work/logs/old.txt",
    "ln -s solution.py latest.py",
    "ln -sf ../solution.py src/solution.py",
    "touch logs/a.txt; chmod +x good.sh",
    "chmod -x good.sh",
    "sed -n '1,20p' solution.py",
    "sed -i 's/lr=0.1/lr=0.05/g' solution.py",
    "sed -i -e 's/a/b/' -e '3d' solution.py && git diff --stat",
    "sed 's#/#_#g' train.csv | head",
    "sed -E 's/(w|e)x/\\1y/' train.csv",
    "awk -F, '{print $1, $2}' input/train.csv | sort | uniq -c | sort -rn | head",
    "awk -F, 'NR>1 && $3 > 5 {s+=$3} END {print s/NR}' input/train.csv",
    "awk '{print $1 > \"logs/first.txt\"}' train.csv",
    "grep -rn 'def train' src/ || echo none",
    "grep -E 'Final Validation (Score|Performance)' logs/*.txt | tail -1",
    "find . -name '*.py' -not -path './input/*' | head",
    "find . -name '__pycache__' -type d -exec rm -rf {} +",
    "find logs -name '*.tmp' -delete",
    "find . -name '*.pyc' | xargs rm -f",
    "find . -type f | grep csv | xargs -I{} wc -l {}",
    "find / -name 'libcudart*' 2>/dev/null | head -3",
    "echo hello > out.txt; cat out.txt",
    "echo \"score: 0.5\" >> logs/scores.txt",
    "echo a > /dev/null 2>&1; echo b >&2",
    "for i in 1 2 3; do python solution.py --fold $i > logs/fold_$i.txt 2>&1; done",
    "for f in *.csv; do wc -l \"$f\"; cp \"$f\" \"final/$f\"; done",
    "for f in src/*.py; do echo ${f##*/}; python -m py_compile $f; done",
    "for ((i=0; i<3; i++)); do echo $i >> logs/count.txt; done",
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i > logs/$i.txt; done",
    "if [ -f submission.csv ]; then head -3 submission.csv; else echo missing; fi",
    "[ -d final ] || mkdir final",
    "[[ -f solution.py && -s solution.py ]] && echo ok",
    "case \"$1\" in a) echo a;; *) echo b;; esac",
    "OUT=final; mkdir -p $OUT && cp train.csv \"$OUT/x.csv\"",
    "mkdir -p runs && R=runs/one && mkdir -p $R && touch $R/x",
    "N=$(nproc); python solution.py --jobs $N",
    "T=$(date +%Y%m%d_%H%M%S); python solution.py > logs/run_$T.txt",
    "cd src && ls && cd .. && touch x",
    "cd ROOT/work && python solution.py > out.txt",
    "cd final || exit 1; touch x",
    "cd ROOT/data && head -2 train.csv",
    "(cd src && touch y); touch z",
    "D=$(pwd); echo x > \"$D/x.txt\"",
    "echo x > $PWD/x.txt",
    "set -euo pipefail; python solution.py | tail -1",
    "run() { python solution.py --fold \"$1\" > \"logs/$1.txt\"; }; run 1; run 2",
    "bash good.sh",
    "./good.sh",
    "bash -c 'echo hi > out.txt'",
    "sh -c 'cd src && ls | wc -l'",
    "bash <<'EOF'\necho hi > out.txt\nEOF",
    "eval 'echo hi'",
    "env | sort | head",
    "env FOO=1 python solution.py",
    "tar czf final/src.tar.gz src && tar tzf final/src.tar.gz",
    "tar -xzf a.tar.gz -C src",
    "unzip -o input/a.zip -d src",
    "unzip -l input/a.zip",
    "zip -r final/a.zip src",
    "zcat input/train.csv.gz | head -2",
    "gunzip -c input/train.csv.gz > train.csv",
    "sort -u train.csv -o train.csv",
    "split -l 100 train.csv src/part_",
    "git init -q && git add -A && git commit -qm 'first'",
    "git status --short; git diff | head; git log --oneline -3",
    "ps aux | grep python | head -3",
    "jq '.score' result.json",
    "diff <(head -1 train.csv) <(head -1 input/train.csv)",
    "cat train.csv | tr ',' '\\n' | wc -l",
    "xargs -n1 echo < train.csv",
    "read -r LINE < train.csv; echo \"$LINE\"",
    "arr=(a b c); for x in \"${arr[@]}\"; do echo $x > logs/$x.txt; done",
    "echo 'rm -rf /' # only words",
    "printf 'a,b\\n1,2\\n' > tiny.csv",
    "tail -f logs/run.txt & sleep 2; kill %1",
    "gcc -O2 -o src/a.out src/a.c && ./src/../good.sh",
    "ldd /usr/lib/libfoo.so | head; file /bin/ls",
    "sleep 5; echo done",
    "sed -n \"$((2 + 1))p\" train.csv",
    "awk '/error|warn/ {n++} END {print n}' logs/*.txt",
    "PATH=/usr/local/cuda/bin:$PATH nvcc --version",
    "export PATH=$HOME/.local/bin:$PATH",
    "python -W ignore solution.py",
    "python -Wignore -u solution.py",
    "bash -o pipefail -c 'python solution.py | tail -1'",
    "mytool train --config src/config.yaml",
    "echo 'größer als naïve 🚀' > logs/ü.txt",
    "cd src && X=../final && touch $X/y",
    "jupyter nbconvert --to script src/a.ipynb",
    "mv solution.py src/ 2>/dev/null || true",
    "git commit -m 'see ../notes and /etc'",
    "python -c \"from subprocess import run; run(['ls', '-la'])\"",
    "python -c \"import asyncio; asyncio.run(print('x'))\"",
    "ls -t logs | head -1 | xargs -I{} tail -5 logs/{}",
    "while IFS=, read -r a b; do echo \"$a\"; done < train.csv",
    "# just a comment",
    "",
];

/// REQ-OR-033
#[test]
fn work_inside_is_not_hindered() {
    let ground = Ground::new();
    let wrong: Vec<_> = ALLOWED
        .iter()
        .map(|command| (command, ground.shell(command)))
        .filter(|(_, verdict)| *verdict != Verdict::Allow)
        .collect();
    assert!(wrong.is_empty(), "denied: {wrong:#?}");
    assert!(ALLOWED.len() >= 60);
}

/// REQ-OR-033: whatever is allowed, a redirection to outside makes it denied.
#[test]
fn no_allowed_command_may_end_in_a_redirection_to_outside() {
    let ground = Ground::new();
    let wrong: Vec<_> = ALLOWED
        .iter()
        // After a heredoc or a comment, the words would not be a redirection.
        .filter(|command| !command.contains("<<") && !command.contains('#'))
        .filter(|command| !command.ends_with('&'))
        .map(|command| format!("{command} > ROOT/victim/file"))
        .filter(|command| ground.shell(command) == Verdict::Allow)
        .collect();
    assert!(wrong.is_empty(), "allowed: {wrong:#?}");
}
