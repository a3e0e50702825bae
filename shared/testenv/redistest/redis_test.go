package redistest_test

import (
	"testing"

	"github.com/weirlog/weir/shared/testenv/redistest"
)

// Each test has a database of its own, which is empty.
func TestDatabaseIsEmpty(t *testing.T) {
	for range 2 {
		t.Run("round", func(t *testing.T) {
			first, second := redistest.URL(t), redistest.URL(t)
			if first == second {
				t.Fatal("two databases with one address")
			}
			if answer, err := redistest.Command(t.Context(), first, "SETNX only:here 1"); err != nil || answer != ":1" {
				t.Errorf("%q, %v: the database is not empty", answer, err)
			}
			if answer, err := redistest.Command(t.Context(), second, "EXISTS only:here"); err != nil || answer != ":0" {
				t.Errorf("%q, %v: the databases are one", answer, err)
			}
		})
	}
}
