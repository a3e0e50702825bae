package bus

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/ruletext"
)

// After a restore, the table has an older version than readers: these take it,
// and have rules all the while. What the table lacks is forgotten.
func TestComparedRulesReplaceNewerOnes(t *testing.T) {
	book := rules.NewBook(prometheus.NewRegistry(), time.Now)
	for _, project := range []string{"prj_1", "prj_2"} {
		if err := book.Set(project, 5, "redact email"); err != nil {
			t.Fatal(err)
		}
	}
	topic := &RulesTopic{Clock: time.Now}
	newer, same := contract.IngestRules{Version: 5, Text: "redact email"}, contract.IngestRules{Version: 1, Text: "drop a"}
	has := map[string]contract.IngestRules{"prj_1": newer, "prj_2": newer, "prj_3": same}
	d := topic.difference(has, []postgres.Rules{
		{Project: "prj_1", Version: ruletext.Version{Number: 2, Text: "redact ip"}}, {Project: "prj_3", Version: ruletext.Version{Number: 1, Text: "drop a"}},
	})
	if len(d.Publish) != 2 || d.Lost != "rules of 1 projects, 1 tombstones" {
		t.Fatalf("%d messages, lost: %s", len(d.Publish), d.Lost)
	}
	for _, out := range d.Publish {
		record := bus.Record{Key: []byte(out.Message.Metadata[bus.KeyMetadata]), Value: out.Message.Payload}
		record.Headers = []bus.Header{{Key: contract.HeaderType, Value: []byte(out.Message.Metadata[contract.HeaderType])}}
		if err := applyRules(record, book); err != nil {
			t.Fatal(err)
		}
		if !book.Redacts("prj_1") {
			t.Error("a project that has rules is without them for a moment")
		}
	}
	if book.Redacts("prj_2") {
		t.Error("a project that is gone has rules")
	}
	if err := book.Set("prj_1", 3, "drop a"); err != nil || book.Redacts("prj_1") {
		t.Errorf("a change after the restore is ignored: %v", err)
	}
}
