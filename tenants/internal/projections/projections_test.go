package projections_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/projections"
)

// Every event is projected, or marked as unprojected; and no other is.
func TestEveryEventIsProjected(t *testing.T) {
	all := projections.All()
	for _, event := range tenants.Events() {
		if all[tenants.EventName(event)] == nil {
			t.Errorf("%T has no projection", event)
		}
		delete(all, tenants.EventName(event))
	}
	for name := range all {
		t.Errorf("%s is no event", name)
	}
}
