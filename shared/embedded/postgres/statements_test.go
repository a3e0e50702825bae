package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

// Statements are counted if the binaries include the extension.
func TestStatementsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: dir(t), Throwaway: true, CountStatements: true})
	defer stop(t, s)
	counted := query[bool](t, s.URL(), "SELECT to_regclass('pg_stat_statements') IS NOT NULL")
	if want := comeWithCounter(s.Binaries()); counted != want {
		t.Errorf("the binaries come with the extension: %t; statements are counted: %t", want, counted)
	}
	if counted && query[int](t, s.URL(), "SELECT count(*) FROM pg_stat_statements") == 0 {
		t.Error("no statement was counted")
	}
}

func TestLibrariesLieBesideBinaries(t *testing.T) {
	for _, libraries := range []string{"lib", "lib/postgresql"} {
		root := t.TempDir()
		bin, library := filepath.Join(root, "bin"), filepath.Join(root, libraries)
		if comeWithCounter(bin) {
			t.Errorf("%q has no libraries", root)
		}
		if err := os.MkdirAll(library, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(library, statementCounter+".so"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !comeWithCounter(bin) {
			t.Errorf("%s is not found in %q", statementCounter, library)
		}
	}
}
