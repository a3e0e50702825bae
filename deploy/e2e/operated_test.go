package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// An operator follows the pages, command by command: installs the
// services, observes them, prepares an upgrade, makes backups, loses a
// database and restores it.
func TestOperated(t *testing.T) {
	o := newOperator(t, strings.Join(kafkatest.Brokers(t), ","))
	o.follow("observe.md", "Traces")
	o.install()
	in := o.connect()
	to, m, sent := in.tenant(t, t.Context(), "kept", "scale"), &maker{mark: "kept"}, &history{}
	entries := m.some(30)
	deliver(t, t.Context(), in, to, "once", plainly(body(texts(entries)...)), entries, sent)
	verify(t, t.Context(), in, to, sent)
	o.observe()
	o.follow("upgrade.md", "Before")
	o.follow("upgrade.md", "The order")
	o.follow("backup.md", "What to back up, and how often")
	o.follow("backup.md", "Is there one?")
	o.stop()
	o.loseLedger()
	o.restore()
	verify(t, t.Context(), o.connect(), to, sent)
	o.stop()
}

// install follows the page until all services run.
func (o *operator) install() {
	o.t.Helper()
	steps := o.blocks("install.md", "Processes")
	o.run(steps[0])
	o.follow("secure.md", "Let no service own its tables")
	o.given["WEIR_BROKERS"], o.given["WEIR_BACKUP_DIR"] = o.brokers, filepath.Join(o.folder, "backups")
	o.starting = steps[1]
	o.start()
}

// observe reads metrics, a profile, sizes and spans.
func (o *operator) observe() {
	o.t.Helper()
	for section, want := range map[[2]string]string{
		{"observe.md", "Metrics"}: "weir_ledger_", {"observe.md", "Profiles"}: "flat%", {"size.md", "Disk"}: "weir_table_bytes",
	} {
		if shown := o.follow(section[0], section[1]); !strings.Contains(shown, want) {
			o.t.Errorf("the commands of %v show %q", section, shown)
		}
	}
	testenv.Eventually(o.t, viewTimeout, func() error {
		if len(o.collector.Spans()) == 0 {
			return errors.New("the collector has no spans")
		}
		return nil
	})
}

// loseLedger drops the ledger's tables.
func (o *operator) loseLedger() {
	o.t.Helper()
	o.run(`psql --host="$PGHOST" --username="$PGUSER" --dbname=ledger --quiet --command='ALTER SCHEMA ledger RENAME TO damaged'`)
}

// restore follows the steps for the night, and starts the services
// before the last.
func (o *operator) restore() {
	o.t.Helper()
	steps := o.blocks("backup.md", "At three in the morning")
	last := len(steps) - 1
	for _, block := range steps[:last] {
		o.run(block)
	}
	o.start()
	o.given["WEIR_DATABASE_URL_FILE"] = "secrets/ledger_database_url" // as the ledger has it
	o.run(steps[last])
}
