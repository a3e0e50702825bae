package eventstore_test

import (
	"testing"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstoretest"
)

// Memory promises what every store promises.
func TestMemory(t *testing.T) {
	eventstoretest.Run(t, func(_ *testing.T, project func([]eventstore.Recorded[eventstoretest.Counted]) error) eventstoretest.Subject {
		store := eventstore.NewMemory(eventstoretest.Codec(), project)
		return eventstoretest.Subject{Store: store, ReadAll: store.ReadAll}
	})
}
