#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""manual - is what the manual pages and README say true to the program?

usage: manual.py SOURCE_ROOT DWELLD DWELLCTL REGISTRY
Each example of a configuration goes through dwelld --check; lists of signals, statistics, options, keys, rungs, rules,
message ids, fields and variables are compared with the program, both ways. Ends with "N passed, N failed, N skipped"."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, DWELLD, DWELLCTL, REGISTRY = sys.argv[1:5]
PAGES = ['dwelld.8', 'dwellctl.1', 'dwelld.conf.5', 'dwelld-signals.7', 'dwelld-hooks.7', 'dwelld-journal.7']
count = {'passed': 0, 'failed': 0, 'skipped': 0}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


def verdict(good, what, why=''):
    count['passed' if good else 'failed'] += 1
    if not good:
        print('NOT OK', what)
        for line in why.strip().splitlines():
            print('       ', line)


def skip(what):
    count['skipped'] += 1
    print('SKIPPED', what)


def same(what, documented, real):
    """Two sets; says what is in one and not in the other."""
    documented, real = set(documented), set(real)
    why = ''.join('only in the manual: %s\n' % (x,) for x in sorted(documented - real, key=str))
    why += ''.join('only in the program: %s\n' % (x,) for x in sorted(real - documented, key=str))
    if not real:
        why += 'nothing was found in the program: this test looks in the wrong place\n'
    verdict(not why, what, why)


def run(*words):
    r = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                       universal_newlines=True, check=False)
    return r.returncode, r.stdout, r.stderr


# ---- examples ----

def plain(text):
    """The literal text of a page without roff's escapes."""
    for escaped, real in (('\\(dq', '"'), ('\\&', ''), ('\\-', '-'), ('\\e', '\\')):
        text = text.replace(escaped, real)
    return text


def blocks(page):
    """(kind, line, text) of each marked literal block."""
    kind, begin, text = None, 0, None
    for number, line in enumerate(read('man', page).splitlines(), 1):
        mark = re.match(r'\.\\" check: (\w+)$', line)
        if mark:
            kind = mark.group(1)
        elif line.startswith('.Bd -literal') and kind:
            begin, text = number, []
        elif line == '.Ed' and text is not None:
            yield kind, begin, plain('\n'.join(text) + '\n')
            kind, text = None, None
        elif text is not None:
            text.append(line)


def fences(page):
    """(line, text) of each ```conf of a Markdown page."""
    for m in re.finditer(r'^```conf\n(.*?)^```$', read(page), re.M | re.S):
        yield read(page)[:m.start()].count('\n') + 1, m.group(1)


def check_config(text, directory):
    """Programs and credentials of an example are not on this machine: some that are stand for them."""
    for hook in re.findall(r'/usr/libexec/dwelld/hooks/([a-z-]+)', text):
        if not os.path.exists(os.path.join(ROOT, 'hooks', hook)):
            return 1, '', 'no hook of that name is shipped: ' + hook
    text = re.sub(r'(exec\s*=\s*\[\s*)"/[^"]*"', r'\1"/bin/true"', text)
    text = re.sub(r'"([a-z-]+):/etc/[^"]*"', r'"\1:/etc/passwd"', text)
    path = os.path.join(directory, 'example.conf')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return run(DWELLD, '--check', '--config', path)


def check_sh(text, directory):
    path = os.path.join(directory, 'example.sh')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    code, out, err = run('sh', '-n', path)
    if code == 0 and shutil.which('shellcheck'):
        code, out, err = run('shellcheck', '-e', 'SC2015', path)
    return code, out + err


def check_event(text):
    try:
        import jsonschema
    except ImportError:
        return None, ''
    try:
        jsonschema.validate(json.loads(text), json.loads(read('conf', 'hook-event.schema.json')))
    except (ValueError, jsonschema.ValidationError) as e:
        return False, str(e).splitlines()[0]
    return True, ''


def example(where, kind, text, directory, before):
    if kind == 'config':
        code, out, err = check_config(text, directory)
        verdict(code == 0 and not err, where + ': example is accepted without a word', out + err)
    elif kind == 'refused':
        code, _, err = check_config(text, directory)
        verdict(code == 78, where + ': example is refused', 'exit %d\n%s' % (code, err))
        return err
    elif kind == 'message':
        verdict(text.strip() in (before or ''), where + ': the message is the one', 'there is: %s' % before)
    elif kind == 'sh':
        code, said = check_sh(text, directory)
        verdict(code == 0, where + ': script', said)
    elif kind == 'event':
        good, said = check_event(text)
        if good is None:
            skip(where + ': python3-jsonschema is missing')
        else:
            verdict(good, where + ': event fits its schema', said)
    else:
        verdict(False, where + ': unknown mark "check: %s"' % kind)
    return None


def examples():
    with tempfile.TemporaryDirectory() as directory:
        found = {}
        for page in PAGES:
            before = None
            for kind, line, text in blocks(page):
                before = example('man/%s:%d' % (page, line), kind, text, directory, before)
                found[page] = found.get(page, 0) + 1
        for page in ('dwelld.conf.5', 'dwelld-hooks.7'):
            verdict(found.get(page, 0) >= 3, 'man/%s has marked examples' % page)
        n = 0
        for line, text in fences('README.md'):
            example('README.md:%d' % line, 'config', text, directory, None)
            n += 1
        verdict(n > 0, 'README.md has examples')


# ---- lists ----

def between(page, begin, end):
    text = read('man', page)
    m = re.search(r'^\.\\" %s$(.*?)^\.\\" %s$' % (re.escape(begin), re.escape(end)), text, re.M | re.S)
    if not m:
        verdict(False, 'man/%s has no part "%s"' % (page, begin))
        return ''
    return m.group(1)


def rows(part):
    """Cells of .It lines, without macros."""
    for line in re.findall(r'^\.It (.*)$', part, re.M):
        cells = [re.sub(r'^(Li|Ic|Em|Va|Ev) ', '', c.strip()) for c in re.split(r' ?\bTa\b ?', line)]
        if not line.startswith('Em '):
            yield cells


def items(part, macro='Ic'):
    """Names behind .It MACRO a , b."""
    for line in re.findall(r'^\.It %s (.*)$' % macro, part, re.M):
        yield from line.split(' , ')


def signals():
    _, out, _ = run(REGISTRY)
    real = [line.split() for line in out.splitlines()]
    part = between('dwelld-signals.7', 'signals:', 'signals end')
    same('signals of dwelld-signals(7)', (tuple(r) for r in rows(part)),
         (tuple(w[1:6]) for w in real if w[0] == 'signal'))
    page = read('man', 'dwelld-signals.7').replace(part, '')
    told = {n for line in re.findall(r'^\.It Li (.*)$', page, re.M) for n in line.split(' , ') if ' Ta ' not in line}
    for w in real:
        if w[0] == 'signal':
            verdict(w[1] in told, 'dwelld-signals(7) explains ' + w[1])
    stats = [line.split(' ', 3) for line in out.splitlines() if line.startswith('stat ')]
    same('statistics of dwelld-signals(7)', (tuple(r) for r in rows(between('dwelld-signals.7', 'stats:', 'stats end'))),
         (tuple(w[1:4]) for w in stats))
    conf = re.sub(r'\s+', ' ', read('man', 'dwelld.conf.5'))
    for w in stats:
        if w[2] != '0':
            verdict('%s %s' % (w[1], w[2]) in conf, 'dwelld.conf(5) says that %s needs %s samples' % (w[1], w[2]))


OPTION = re.compile(r'(?<![\w-])--[a-z][a-z-]*')


def options(page, not_ours, *helps):
    """not_ours: options of another program that the help mentions."""
    told = {'--' + o for line in re.findall(r'^\.It Fl (.*)$', read('man', page), re.M)
            for o in re.findall(r'(?:^|[ ,])-([a-z][a-z-]*)', line)}
    said = ''.join(run(*words)[1] for words in helps)
    same('options of man/' + page, told, set(OPTION.findall(said)) - not_ours)


def programs():
    _, out, _ = run(DWELLCTL, '--help')
    verbs = set(re.findall(r'^  ([a-z]+) ', out, re.M))
    page = read('man', 'dwellctl.1')
    same('verbs of dwellctl(1)', re.findall(r'^\.It Cm ([a-z]+)$', page, re.M), verbs)
    options('dwellctl.1', {'--check'}, [DWELLCTL, '--help'], *[[DWELLCTL, v, '--help'] for v in sorted(verbs)])
    options('dwelld.8', set(), [DWELLD, '--help'])
    _, out, _ = run(DWELLD, '--help')
    same('variables of dwelld(8)', re.findall(r'^\.It Ev (DWELLD_\w+)$', read('man', 'dwelld.8'), re.M),
         re.findall(r'\bDWELLD_\w+', out))
    code, _, err = run(DWELLD, '--rungs', 'no-such-rung')
    verdict(code == 2, 'dwelld --rungs refuses what it does not know')
    same('rungs of dwelld(8)', ('='.join(r[:2]) for r in rows(between('dwelld.8', 'rungs:', 'rungs end'))),
         re.findall(r'\b[a-z]+=[a-z_]+(?=,)', err))


def table(source, name):
    """Strings of "static const char *const NAME[] = { ... NULL };"."""
    m = re.search(r'static const char \*const %s\[\] = \{(.*?)NULL\s*\};' % name, read('src', source), re.S)
    return set(re.findall(r'"(\w+)"', m.group(1))) if m else set()


def keys():
    parts = {'top': ('config_params.c', 'top_now'), 'targets': ('config_targets.c', 'now'), 'rules': ('config_rules.c', 'now'),
             'critical': ('config_rules.c', 'critical_now'), 'hooks': ('config_hooks.c', 'now'),
             'undo': ('config_hooks.c', 'undo_now')}
    for part, (source, name) in parts.items():
        same('keys of %s in dwelld.conf(5)' % part, items(between('dwelld.conf.5', 'keys: ' + part, 'keys: end')),
             table(source, name))
    # a table of keys that nobody compares would be a section without a manual
    for source in sorted(os.listdir(os.path.join(ROOT, 'src'))):
        if re.match(r'config_\w+\.c$', source):
            for name in re.findall(r'struct config_keys keys = \{(\w+),', read('src', source)):
                verdict(name == 'names' or (source, name) in parts.values(),
                        'the keys "%s" of src/%s are compared with the manual' % (name, source))
    rules = re.search(r'^rules = \(.*', read('conf', 'builtin.conf'), re.M | re.S)
    same('shipped rules in dwelld.conf(5)', items(between('dwelld.conf.5', 'shipped rules', 'shipped end')),
         re.findall(r'^\t\tname = "([a-z-]+)"', rules.group(0), re.M) if rules else [])
    profiles()


def profiles():
    text = read('conf', 'builtin.conf')
    real = []
    for name, body in re.findall(r'^\t(\w+) = \{ (slow .*?) \};$', text, re.M):
        value = dict(re.findall(r'(\w+) = "(\w+)"', body))
        real.append((name, value['slow'], value['clear'], value['bad'], value.get('at_most', 'critical')))
    page = read('man', 'dwelld.conf.5')
    same('profiles in dwelld.conf(5)', (tuple(r) for r in rows(page) if len(r) == 5), real)


def journal():
    ids = re.findall(r'#define JOURNAL_ID_(\w+) "([0-9a-f]{32})"', read('src', 'act', 'journal_ids.h'))
    same('message ids of dwelld-journal(7)', (tuple(r[:2]) for r in rows(between('dwelld-journal.7', 'ids:', 'ids end'))),
         ((name.lower().replace('_', '-'), value) for name, value in ids))
    events = re.findall(r'case EVENT_\w+: return "([a-z-]+)"', read('src', 'decide', 'event.c'))
    same('events of dwelld-journal(7)', items(between('dwelld-journal.7', 'events:', 'events end')), events)
    source = read('src', 'act', 'journal_entry.c') + read('src', 'act', 'journal.c')
    fields = set(re.findall(r'"((?:DWELLD_[A-Z_]+|MESSAGE|MESSAGE_ID|PRIORITY|SYSLOG_IDENTIFIER))"', source))
    part = between('dwelld-journal.7', 'fields:', 'fields end').replace('RESULT_ Ns Ar KEY', 'RESULT_')
    same('fields of dwelld-journal(7)', items(part, 'Va'), fields)


def hooks():
    env = re.findall(r'keep\(c, "([A-Z_]+)=', read('src', 'run', 'child.c'))
    same('variables of dwelld-hooks(7)', items(between('dwelld-hooks.7', 'env:', 'env end'), 'Ev'), env)
    page = read('man', 'dwelld-hooks.7')
    same('shipped hooks in dwelld-hooks(7)', re.findall(r'^\.It Nm ([a-z-]+)$', page, re.M),
         [h for h in os.listdir(os.path.join(ROOT, 'hooks')) if h != 'meson.build'])


def mandoc():
    if not shutil.which('mandoc'):
        skip('mandoc is missing')
        return
    for page in PAGES:
        code, out, err = run('mandoc', '-Tlint', '-Wwarning', os.path.join(ROOT, 'man', page))
        verdict(code == 0, 'mandoc -Tlint man/' + page, out + err)


def main():
    for part in (examples, signals, programs, keys, journal, hooks, mandoc):
        part()
    print('%(passed)d passed, %(failed)d failed, %(skipped)d skipped' % count)
    return 1 if count['failed'] else 0


sys.exit(main())
