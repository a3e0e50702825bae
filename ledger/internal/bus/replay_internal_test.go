package bus

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// Organizations created at about one time are applied together, in any
// order, with the events between them.
func TestOrganizationsBeginTogether(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	created := func(after time.Duration) bus.Record {
		return bus.Record{
			Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeOrganizationCreated)}},
			Value:   fmt.Appendf(nil, `{"organization":"acme","tier":"indie","created_at":%q}`, noon.Add(after).Format(time.RFC3339)),
		}
	}
	for _, test := range []struct {
		name    string
		records []bus.Record
		n       int
		last    time.Time
	}{
		{"of one hour", []bus.Record{created(0), created(maxCreationSpan), {}, created(-maxCreationSpan)}, 4, noon.Add(maxCreationSpan)},
		{"later", []bus.Record{created(0), {}, created(maxCreationSpan + time.Second)}, 2, noon},
		{"earlier", []bus.Record{created(0), created(-maxCreationSpan - time.Second)}, 1, noon},
		{"none", []bus.Record{{}, {}}, 2, time.Time{}},
	} {
		if n, last := sameTime(test.records); n != test.n || !last.Equal(test.last) {
			t.Errorf("%s: %d until %s, want %d until %s", test.name, n, last, test.n, test.last)
		}
	}
}
