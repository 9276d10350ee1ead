#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Count what a meson test log (JSON lines) says: name, result, seconds, passed, failed, skipped, remark; tab separated.
What failed or was skipped is told with its own words, indented, after the line."""
import json
import re
import sys

CRITERION = re.compile(r'Synthesis: Tested: \S*?(\d+)\S* \| Passing: \S*?(\d+)\S* \| Failing: \S*?(\d+)\S* \| Crashing: \S*?(\d+)')
ANSI = re.compile(r'\x1b\[[0-9;]*[A-Za-z]')
PLAIN = re.compile(r'^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$', re.M)


def count(text, result):
    """(passed, failed, skipped) of one test, or by its result when it says nothing itself."""
    plain = PLAIN.findall(text)
    if plain:
        p, f, s = plain[-1]
        return int(p), int(f), int(s or 0)
    crit = CRITERION.findall(text)
    if crit:
        tested, passing, failing, crashing = map(int, crit[-1])
        skips = len(re.findall(r'\[SKIP\]', text))
        return passing, failing + crashing + max(0, tested - passing - failing - crashing), skips
    if result == 'SKIP':
        return 0, 0, 1
    return (1, 0, 0) if result in ('OK', 'EXPECTEDFAIL') else (0, 1, 0)


def main():
    for line in open(sys.argv[1], encoding='utf-8', errors='replace'):
        test = json.loads(line)
        text = ANSI.sub('', (test.get('stdout') or '') + '\n' + (test.get('stderr') or ''))
        p, f, s = count(text, test['result'])
        if test['result'] not in ('OK', 'SKIP') and not f:
            f = 1   # it failed although its own count did not say so
        print('\t'.join([test['name'].split(' / ')[-1].split(':')[-1], test['result'], '%.1f' % test['duration'], str(p), str(f),
                         str(s), '']))
        if f or s:
            for row in text.splitlines():
                if re.search(r'NOT OK|not ok|\[FAIL\]|\[SKIP\]|^skip |\[----\]|ERROR:|runtime error', row):
                    print('      ' + row.strip()[:300], file=sys.stderr)


if __name__ == '__main__':
    main()
