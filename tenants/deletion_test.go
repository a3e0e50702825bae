package tenants_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

// The decisions of a deletion follow from its state.
func TestDeletion(t *testing.T) {
	shop := tenants.Deletable{Organization: "org_1", Project: "prj_1"}
	requested := tenants.DeletionRequested{Deletable: shop, At: noon, BeginsAt: later}
	cancelled := tenants.DeletionCancelled{Deletable: shop, At: noon}
	begun := tenants.DeletionBegun{Deletable: shop, At: later, GoneBy: later.Add(tenants.ErasureTimeout)}
	finished := tenants.DeletionFinished{Deletable: shop, At: later, ReducedLines: 1}
	request := func(d tenants.Deletion) ([]tenants.Event, error) { return d.Request(shop, noon, later.Sub(noon)) }
	cancel := func(d tenants.Deletion) ([]tenants.Event, error) { return d.Cancel(noon) }
	begin := func(d tenants.Deletion) ([]tenants.Event, error) { return d.Begin(later) }
	early := func(d tenants.Deletion) ([]tenants.Event, error) { return d.Begin(later.Add(-time.Microsecond)) }
	finish := func(d tenants.Deletion) ([]tenants.Event, error) {
		return d.Finish(tenants.DeletionFinished{At: later, ReducedLines: 1})
	}
	for name, test := range map[string]struct {
		given []tenants.Event
		when  func(tenants.Deletion) ([]tenants.Event, error)
		then  []tenants.Event
		err   error
		state tenants.DeletionState
	}{
		"request":                     {nil, request, []tenants.Event{requested}, nil, tenants.Deleting},
		"request again":               {[]tenants.Event{requested}, request, nil, nil, tenants.Deleting},
		"request what was restored":   {[]tenants.Event{requested, cancelled}, request, []tenants.Event{requested}, nil, tenants.Deleting},
		"request what is gone":        {[]tenants.Event{requested, begun, finished}, request, nil, nil, tenants.Gone},
		"cancel":                      {[]tenants.Event{requested}, cancel, []tenants.Event{cancelled}, nil, tenants.DeletionCancelledState},
		"cancel again":                {[]tenants.Event{requested, cancelled}, cancel, nil, nil, tenants.DeletionCancelledState},
		"cancel what has begun":       {[]tenants.Event{requested, begun}, cancel, nil, tenants.ErrBegun, tenants.Erasing},
		"cancel what was not deleted": {nil, cancel, nil, tenants.ErrNotFound, ""},
		"begin":                       {[]tenants.Event{requested}, begin, []tenants.Event{begun}, nil, tenants.Erasing},
		"begin too early":             {[]tenants.Event{requested}, early, nil, nil, tenants.Deleting},
		"begin what was cancelled":    {[]tenants.Event{requested, cancelled}, begin, nil, nil, tenants.DeletionCancelledState},
		"begin twice":                 {[]tenants.Event{requested, begun}, begin, nil, nil, tenants.Erasing},
		"finish":                      {[]tenants.Event{requested, begun}, finish, []tenants.Event{finished}, nil, tenants.Gone},
		"finish twice":                {[]tenants.Event{requested, begun, finished}, finish, nil, nil, tenants.Gone},
		"finish what has not begun":   {[]tenants.Event{requested}, finish, nil, nil, tenants.Deleting},
	} {
		var deletion tenants.Deletion
		for _, event := range test.given {
			deletion.Apply(event)
		}
		events, err := test.when(deletion)
		if !reflect.DeepEqual(events, test.then) || !errors.Is(err, test.err) {
			t.Errorf("%s: got %+v, %v", name, events, err)
		}
		for _, event := range events {
			deletion.Apply(event)
		}
		if got := deletion.State(); got != test.state {
			t.Errorf("%s: is %q, want %q", name, got, test.state)
		}
	}
}
