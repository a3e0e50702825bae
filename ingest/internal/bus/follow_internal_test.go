package bus

import (
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// seenAccounts counts what is applied.
type seenAccounts struct{ changed, marked, forgotten, retention int }

func (s *seenAccounts) Apply(_ string, _ int, account ingest.Account) {
	s.changed, s.retention = s.changed+1, account.RetentionDays
}
func (s *seenAccounts) Mark(ingest.Positions) { s.marked++ }
func (s *seenAccounts) Forget(string)         { s.forgotten++ }

// Both types of weir.accounts.v1 are applied; an unknown type is ignored.
func TestTypesOfAccounts(t *testing.T) {
	for _, c := range []struct {
		eventType, value string
		want             seenAccounts
	}{
		{contract.TypeAccountChanged, `{"tier":"scale"}`, seenAccounts{changed: 1, retention: 90}},
		{contract.TypeAccountChanged, `{"tier":"scale","retention_days":14}`, seenAccounts{changed: 1, retention: 14}},
		{contract.TypeAccountsCounted, `{}`, seenAccounts{marked: 1}},
		{"weir.accounts.v1.sung", `{}`, seenAccounts{}},
		{"weir.accounts.v1.sung", `no JSON`, seenAccounts{}},
		{"", `{}`, seenAccounts{}},
		{"", "", seenAccounts{forgotten: 1}}, // a tombstone
		{contract.TypeAccountChanged, "", seenAccounts{forgotten: 1}},
	} {
		var got seenAccounts
		record := bus.Record{Key: []byte("org_1"), Value: []byte(c.value), Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(c.eventType)}}}
		if err := applyAccount(record, &got); err != nil || got != c.want {
			t.Errorf("%q: %+v, %v, want %+v", c.eventType, got, err, c.want)
		}
	}
}
