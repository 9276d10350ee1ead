/* SPDX-License-Identifier: GPL-2.0-or-later */
/* journal_ids.h - the MESSAGE_ID of every kind of journal entry. Layer: act (constants).
 *
 * Made by "systemd-id128 new"; never changed, since people's filters and systemd/dwelld.catalog name them. A test
 * compares this list with the catalogue. */
#ifndef DWELLD_JOURNAL_IDS_H
#define DWELLD_JOURNAL_IDS_H

/* one per enum event_kind */
#define JOURNAL_ID_FIRE "df930415047d4237b8ea39a3946c9cfe"
#define JOURNAL_ID_WORSE "ccc4c1d544b0475698c8b6a9eca1a52c"
#define JOURNAL_ID_BETTER "793405e61aaa44b3af2fb3988f041bb3"
#define JOURNAL_ID_MITIGATED "6dd54e1486a0465eac5c8330192e7187"
#define JOURNAL_ID_RESOLVE "0a5ec1933e024306bc6125383c9b5429"
#define JOURNAL_ID_WITHDRAW "79e33d8a38cc436e9f36c489f02e164d"
#define JOURNAL_ID_FLAPPING "58f79da42bb9489ab123f3e35688cf00"
#define JOURNAL_ID_SETTLED "0ca127738b2248bf986dd5d7b9e0b3ed"
#define JOURNAL_ID_NODATA "91ffbb44cc634b4dbba6971293f500f1"
#define JOURNAL_ID_DATA_BACK "f4ba0df45f7f4f5ca1de7b156082d4a3"
#define JOURNAL_ID_REMINDER "15cfb0238a5a4c23b2edd58b23fae917"
#define JOURNAL_ID_LATCHED "df26d09861794f029d503fba77fb9692"
#define JOURNAL_ID_TEST "a0da5c49f464465e97105f0a9aea3705"
#define JOURNAL_ID_HOOK_ASKED "0fd0458489f24129b8b97b275edd4e66"
#define JOURNAL_ID_HOOK_DONE "2295120161e54a2f86ba8db68029b2fd"
#define JOURNAL_ID_HOOK_FAILED "3da43f4cb00d431cb575df8bdc4bb784"
/* the daemon's own, for journal_say() */
#define JOURNAL_ID_LOST "55b0ab2f502e462eabdbd82667d401e7"	/* entries lost while journald did not read */
#define JOURNAL_ID_STARTED "6f349bef26ef4715a45e4dfa3df9b52a"
#define JOURNAL_ID_STOPPED "98dd3bae6e5646d6bc425ccc7b34984d"
#define JOURNAL_ID_RELOADED "92a3e9968edb48118fa0ec09dac0fa1c"
#define JOURNAL_ID_RELOAD_REFUSED "784be00f08064d51a119648f97aef1b1"
#define JOURNAL_ID_PROBE "c08758326fd242e0bde800f6afc73e09"	/* a probe fell to a worse rung or has none */
#define JOURNAL_ID_DEBT_FOUND "2658079c1dcc4f69ab6ab48c5f1a4091"	/* an undo owed by an earlier run of the daemon */
#define JOURNAL_ID_OPERATOR "eec96b98cc0d48eaaeff04ae5e934626"	/* a write verb of dwellctl was carried out */
#endif
