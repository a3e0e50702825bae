package clickhouse

import (
	"flag"
	"os"
	"testing"

	ingest "github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/testenv"
)

var update = flag.Bool("update", false, "write the files")

// The files are what `weir history schema` prints.
func TestSchema(t *testing.T) {
	for file, want := range map[string]string{
		"server.sql":  ingest.HistorySchema("weir", "", "", 0),
		"cluster.sql": ingest.HistorySchema("weir", "weir", "hot_cold", 3),
	} {
		if *update {
			testenv.Must(t, os.WriteFile(file, []byte(want), 0o600))
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is another schema (%v): make golden", file, err)
		}
	}
}
