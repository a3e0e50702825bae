package doctor

import (
	"testing"
	"time"
)

var booksFaults = []fault{
	{"stale check", func(t *testing.T, i *installation, c *Config) {
		i.change(t, `UPDATE ledger.checked_ranges SET next = 0`, `UPDATE ledger.checked_ranges c SET next = (SELECT next FROM ledger.bus_positions p
			WHERE group_name = 'ledger.quota' AND p.partition = c.partition)`)
		c.Machine.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	}, Finding{Check: "books", Subject: "checks", Level: Fail, Seen: "is not checked yet"}},
	{"hour that is not sealed", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	}, Finding{Check: "books", Subject: "seals", Level: Fail, Seen: "not sealed"}},
	{"range that is not its transfers", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ledger.ranges SET charged_bytes = charged_bytes + 1`, `UPDATE ledger.ranges SET charged_bytes = charged_bytes - 1`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "a range charged is the sum of its transfers"}},
	{"range that is not the log", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ledger.ranges SET bytes = bytes + 1`, `UPDATE ledger.ranges SET bytes = bytes - 1`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "the log has"}},
	{"root that is not of the chains", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO ledger.seals (hour, organizations, root, sealed_at) VALUES ('2100-01-01T00:00:00Z', 7, '\x00', now())`, `DELETE FROM ledger.seals WHERE organizations = 7`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "of 7 chains"}},
}
