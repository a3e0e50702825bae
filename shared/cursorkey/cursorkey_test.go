package cursorkey_test

import (
	"bytes"
	"testing"

	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// The key of a schema never changes, and is no other schema's.
func TestKey(t *testing.T) {
	read := func(schema string) []byte {
		t.Helper()
		pool := pgtest.Open(t, schema, cursorkey.Migrations())
		first, err := cursorkey.Read(t.Context(), pool)
		if err != nil || len(first) != 32 {
			t.Fatalf("a key of %d bytes, %v", len(first), err)
		}
		testenv.Must(t, pg.Migrate(t.Context(), pool, schema, cursorkey.Migrations()))
		if again, err := cursorkey.Read(t.Context(), pool); err != nil || !bytes.Equal(again, first) {
			t.Errorf("another key after a second start, %v", err)
		}
		return first
	}
	if bytes.Equal(read("one"), read("two")) {
		t.Error("two schemas have the same key")
	}
}
