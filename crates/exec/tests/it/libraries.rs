//! What people train with works while it is held, and leaves nothing behind.
//!
//! Each script computes something real on small made-up data, checks it, and prints one line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::slots::{Slots, our_cores};
use mle_star_exec::{Ended, ExecError, Executor, Job, Setup, venv};
use tokio::sync::Mutex;

use crate::bench::{Bench, eventually, python, setup};

const BOTH: [Tier; 2] = [Tier::Strong, Tier::Fallback];
/// Importing takes long where nothing is in memory yet.
const PATIENCE: Duration = Duration::from_secs(150);

/// Each of these uses all cores; one after the other they are no slower.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Says that a test checks nothing here, and why.
fn skipped(why: &str) {
    // Not `eprintln`, which the test runner keeps to itself when a test passes.
    writeln!(std::io::stderr(), "skipped: {why}").ok();
}

/// A Python with numpy, pandas, pyarrow, scikit-learn, joblib, LightGBM, XGBoost and CatBoost.
async fn python_with_libraries() -> Option<Utf8PathBuf> {
    let cache = Utf8Path::new(env!("CARGO_TARGET_TMPDIR"));
    match venv::provide_standard(cache, &|_| ()).await {
        Ok(python) => Some(python),
        Err(error) => {
            skipped(&format!("there are no libraries: {error}"));
            None
        }
    }
}

/// With libraries, `script` prints `expected` in both sandboxes.
async fn works(script: &str, expected: &str) {
    if let Some(python) = python_with_libraries().await {
        works_in(&BOTH, python, script, expected).await;
    }
}

/// The same with nothing but Python.
async fn works_without_libraries(script: &str, expected: &str) {
    works_in(&BOTH, python().await, script, expected).await;
}

async fn works_in(tiers: &[Tier], python: Utf8PathBuf, script: &str, expected: &str) {
    let _others = ONE_AT_A_TIME.lock().await;
    for &tier in tiers {
        let setup = async || Setup {
            python: python.clone(),
            slots: Slots::new(1, &our_cores(), &[]),
            ..setup(Wish::Exactly(tier)).await
        };
        if let Err(ExecError::Sandbox { refused }) = setup().await.try_out().await {
            skipped(&format!("no {tier} sandbox: {}", refused.join("; ")));
            continue;
        }
        let bench = Bench::with(setup().await).await;
        let before = shared_memory();

        let job = Job { time_limit: PATIENCE, ..bench.job(script) };
        let outcome = bench.local.run(&job).await.unwrap();

        let said = format!("{tier}: {:?}\n{}", outcome.ended, outcome.stderr.text);
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{said}");
        assert_eq!(outcome.stdout.text.trim_end(), expected, "{said}");
        assert_eq!(outcome.tier, tier);
        assert_eq!(bench.processes(), [0; 0], "{tier}");
        // Others on this machine may have put something there meanwhile, but not for good.
        let new: Vec<OsString> = shared_memory().difference(&before).cloned().collect();
        let left = || new.iter().any(|name| shared_memory().contains(name));
        eventually(&format!("{new:?} are gone after {tier}"), || !left()).await;
    }
}

/// The names in the machine's shared memory.
fn shared_memory() -> BTreeSet<OsString> {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return BTreeSet::new() };
    entries.flatten().map(|entry| entry.file_name()).collect()
}

#[tokio::test]
async fn scikit_learn_uses_all_cores() {
    let script = r"
import joblib
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score

X, y = make_classification(600, 12, n_informative=6, class_sep=2.0, random_state=0)
forest = RandomForestClassifier(30, random_state=0, n_jobs=-1)
scores = cross_val_score(forest, X, y, cv=4, n_jobs=-1)
grid = GridSearchCV(RandomForestClassifier(20, random_state=0), {'max_depth': [2, 4]}, cv=3, n_jobs=-1)
grid.fit(X, y)
alone = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, y).predict_proba(X)
same = abs(forest.fit(X, y).predict_proba(X) - alone).max() < 1e-12
print(len(scores), scores.mean() > 0.9, grid.best_score_ > 0.85, same, joblib.cpu_count())
";
    let cores = our_cores().len();
    works(script, &format!("4 True True True {cores}")).await;
}

#[tokio::test]
async fn joblib_hands_large_arrays_to_its_processes_as_files() {
    let script = r"
import os
import numpy as np
from joblib import Parallel, delayed

def part(array, start):
    return os.getpid(), isinstance(array, np.memmap), float(array[start::4].sum())

if __name__ == '__main__':
    array = np.arange(4_000_000, dtype=np.float64)
    parts = Parallel(n_jobs=2, backend='loky', max_nbytes='1M')(
        delayed(part)(array, start) for start in range(4))
    apart = all(pid != os.getpid() for pid, _, _ in parts)
    mapped = all(mapped for _, mapped, _ in parts)
    threads = Parallel(n_jobs=2, backend='threading')(
        delayed(part)(array, start) for start in range(4))
    print(apart, mapped, sum(s for *_, s in parts) == array.sum(), len(threads))
";
    works(script, "True True True 4").await;
}

#[tokio::test]
async fn lightgbm_trains() {
    let script = r"
import lightgbm, numpy as np
from sklearn.metrics import roc_auc_score

random = np.random.default_rng(0)
X = random.normal(size=(4000, 10))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
train = lightgbm.Dataset(X[:3000], y[:3000])
valid = lightgbm.Dataset(X[3000:], y[3000:], reference=train)
model = lightgbm.train({'objective': 'binary', 'verbose': -1, 'seed': 0}, train, 200,
                       valid_sets=[valid], callbacks=[lightgbm.early_stopping(20, verbose=False)])
model.save_model('model.txt')
again = lightgbm.Booster(model_file='model.txt')
area = roc_auc_score(y[3000:], model.predict(X[3000:]))
print(area > 0.95, np.allclose(again.predict(X[3000:]), model.predict(X[3000:])))
";
    works(script, "True True").await;
}

#[tokio::test]
async fn xgboost_trains() {
    let script = r"
import numpy as np, xgboost
from sklearn.model_selection import cross_val_score

random = np.random.default_rng(0)
X = random.normal(size=(3000, 10))
y = X[:, 0] * 3 + np.sin(X[:, 1]) + random.normal(scale=0.1, size=3000)
model = xgboost.XGBRegressor(n_estimators=80, n_jobs=-1, random_state=0)
scores = cross_val_score(model, X, y, cv=3, scoring='r2')
model.fit(X, y)
model.save_model('model.json')
again = xgboost.XGBRegressor()
again.load_model('model.json')
print(scores.mean() > 0.95, np.allclose(again.predict(X), model.predict(X)))
";
    works(script, "True True").await;
}

#[tokio::test]
async fn catboost_trains() {
    let script = r"
import numpy as np, pandas as pd
from catboost import CatBoostClassifier, Pool

random = np.random.default_rng(0)
table = pd.DataFrame({'x': random.normal(size=2000), 'city': random.choice(['a', 'b', 'c'], 2000)})
y = ((table.x > 0) ^ (table.city == 'a')).astype(int)
model = CatBoostClassifier(iterations=60, one_hot_max_size=3, verbose=False)
model.fit(Pool(table[:1500], y[:1500], cat_features=['city']))
print((model.predict(table[1500:]) == y[1500:]).mean() > 0.95)
";
    works(script, "True").await;
}

#[tokio::test]
async fn pandas_reads_and_writes_tables() {
    let script = r"
import numpy as np, pandas as pd

random = np.random.default_rng(0)
table = pd.DataFrame({
    'id': np.arange(20_000), 'x': random.normal(size=20_000),
    'day': pd.date_range('2024-01-01', periods=20_000, freq='min'),
    'kind': random.choice(['a', 'b', 'ü'], 20_000)})
table.to_csv('final/submission.csv', index=False)
table.to_parquet('table.parquet')
csv = pd.read_csv('final/submission.csv', parse_dates=['day'])
parquet = pd.read_parquet('table.parquet', columns=['id', 'x'])
means = csv.groupby('kind').x.mean()
print(len(pd.read_csv('input/train.csv')), np.allclose(csv.x, table.x), parquet.id.sum(),
      csv.day.dt.tz_localize('Europe/Berlin', ambiguous=True, nonexistent='shift_forward').dt.year.max(),
      sorted(means.index))
";
    works(script, "1 True 199990000 2024 ['a', 'b', 'ü']").await;
}

#[tokio::test]
async fn numbers_are_shared_with_processes_without_copies() {
    let script = r"
from multiprocessing import get_context, shared_memory
import numpy as np

def double(name):
    block = shared_memory.SharedMemory(name)
    array = np.ndarray(1_000_000, buffer=block.buf)
    array *= 2
    del array
    block.close()

if __name__ == '__main__':
    block = shared_memory.SharedMemory(create=True, size=8_000_000)
    array = np.ndarray(1_000_000, buffer=block.buf)
    array[:] = 1.5
    process = get_context('spawn').Process(target=double, args=(block.name,))
    process.start()
    process.join()
    print(process.exitcode, array.sum())
    del array
    block.close()
    block.unlink()
";
    works(script, "0 3000000.0").await;
}

#[tokio::test]
async fn processes_are_forked_and_spawned() {
    let script = r"
import multiprocessing, os
from concurrent.futures import ProcessPoolExecutor

def square(number):
    return number * number

def put(queue, event, lock, value):
    event.wait(30)
    with lock:
        value.value += 1
    queue.put(os.getpid())

if __name__ == '__main__':
    said = []
    for method in ['fork', 'spawn', 'forkserver']:
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            said.append(sum(pool.map(square, range(100), chunksize=5)))
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            said.append(sum(pool.map(square, range(10))))
        queue, event, lock = context.Queue(), context.Event(), context.Lock()
        value = context.Value('i', 0)
        workers = [context.Process(target=put, args=(queue, event, lock, value)) for _ in range(3)]
        for worker in workers: worker.start()
        event.set()
        pids = {queue.get(timeout=60) for _ in workers}
        for worker in workers: worker.join()
        said.append(len(pids) + value.value)
    print(*said)
";
    works_without_libraries(script, "328350 285 6 328350 285 6 328350 285 6").await;
}

#[tokio::test]
async fn a_manager_shares_objects() {
    let script = r"
from multiprocessing import Manager, Process
from multiprocessing.managers import SharedMemoryManager

def add(words, counts, lock, name):
    for _ in range(20):
        with lock:
            counts[name] = counts.get(name, 0) + 1
    words.append(name)

if __name__ == '__main__':
    with Manager() as manager:
        words, counts, lock = manager.list(), manager.dict(), manager.Lock()
        workers = [Process(target=add, args=(words, counts, lock, name)) for name in 'abc']
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        print(sorted(words), sorted(counts.items()), end=' ')
    with SharedMemoryManager() as manager:
        print(sum(manager.ShareableList(range(5))))
";
    works_without_libraries(script, "['a', 'b', 'c'] [('a', 20), ('b', 20), ('c', 20)] 10").await;
}

#[tokio::test]
async fn sqlite_keeps_tables_in_files_and_in_memory() {
    let script = r"
import sqlite3

said = []
for place in ['kept.db', ':memory:']:
    with sqlite3.connect(place) as db:
        said.append(db.execute('pragma journal_mode = wal').fetchone()[0])
        db.execute('create table numbers (n integer primary key, square integer)')
        db.executemany('insert into numbers values (?, ?)', ((n, n * n) for n in range(1000)))
        db.execute('create index by_square on numbers (square desc)')
        said.append(db.execute('select sum(square) from numbers where square > 100').fetchone()[0])
with sqlite3.connect('kept.db') as db:
    db.execute('vacuum')
    said.append(db.execute('select count(*) from numbers').fetchone()[0])
print(*said)
";
    works_without_libraries(script, "wal 332833115 memory 332833115 1000").await;
}

#[tokio::test]
async fn programs_are_started() {
    let script = r"
import os, subprocess, sys

shell = subprocess.run('seq 1 10 | sort -rn | head -n 1; echo $((6 * 7)); exit 3',
                       shell=True, capture_output=True, text=True)
python = subprocess.run([sys.executable, '-c', 'import sys; print(sys.stdin.read()[::-1])'],
                        input='olleh', capture_output=True, text=True, check=True)
late = subprocess.Popen(['sleep', '60'])
try:
    late.wait(timeout=0.1)
except subprocess.TimeoutExpired:
    late.kill()
system = os.waitstatus_to_exitcode(os.system('test -d input'))
print(shell.stdout.split(), shell.returncode, python.stdout.strip(), late.wait(), system)
";
    works_without_libraries(script, "['10', '42'] 3 hello -9 0").await;
}

#[tokio::test]
async fn threads_and_coroutines_work_side_by_side() {
    let script = r"
import asyncio, hashlib, threading
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(16) as pool:
    digests = set(pool.map(lambda n: hashlib.sha256(bytes([n]) * 100_000).digest(), range(32)))
lock, total = threading.Lock(), 0
def add():
    global total
    for _ in range(1000):
        with lock: total += 1
threads = [threading.Thread(target=add) for _ in range(40)]
for thread in threads: thread.start()
for thread in threads: thread.join()

async def both():
    process = await asyncio.create_subprocess_exec('echo', 'hello', stdout=asyncio.subprocess.PIPE)
    said, slept = await asyncio.gather(process.communicate(), asyncio.to_thread(sum, range(100)))
    return said[0].decode().strip(), slept
print(len(digests), total, asyncio.run(both()))
";
    works_without_libraries(script, "32 40000 ('hello', 4950)").await;
}

#[tokio::test]
async fn temporary_files_have_a_place() {
    let script = r"
import mmap, os, shutil, tempfile

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, 'file')
    with open(name, 'w') as file: file.write('one')
    os.chmod(name, 0o600)
    shutil.copy2(name, name + '.copy')
    os.replace(name + '.copy', name + '.moved')
    inside = folder.startswith(os.getcwd())
    names = sorted(os.listdir(folder))
with tempfile.TemporaryFile() as file:
    file.truncate(1 << 20)
    with mmap.mmap(file.fileno(), 0) as mapped:
        mapped[-3:] = b'two'
    file.seek(-3, 2)
    end = file.read().decode()
with tempfile.NamedTemporaryFile('w+') as file, tempfile.SpooledTemporaryFile(10) as spooled:
    spooled.write(b'x' * 100)
    open('/dev/null', 'w').write('gone')
    named = os.path.exists(file.name)
print(inside, names, end, named, os.path.exists(folder), len(open('/dev/urandom', 'rb').read(9)))
";
    works_without_libraries(script, "True ['file', 'file.moved'] two True False 9").await;
}

/// The fallback has the machine's own network, and so no sockets at all that reach it.
#[tokio::test]
async fn a_script_can_talk_to_itself_over_the_loopback_device() {
    let script = r"
import http.server, threading, urllib.request

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode()[::-1])
    def log_message(self, *_): pass

with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f'http://127.0.0.1:{server.server_port}/olleh'
    print(urllib.request.urlopen(address, timeout=20).read().decode())
    server.shutdown()
";
    works_in(&[Tier::Strong], python().await, script, "hello/").await;
}
