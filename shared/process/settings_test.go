package process_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/process"
)

// An error about a database's address names its setting, not its value.
func TestCheckDatabaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "WEIR_DATABASE_URL_FILE", "host=db password=secret": "postgres://", "https://weir:secret@db/weir": "postgres://",
	} {
		err := process.CheckDatabaseURL("WEIR_DATABASE_URL", text)
		if err == nil || !strings.HasPrefix(err.Error(), "WEIR_DATABASE_URL is") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := process.CheckDatabaseURL("WEIR_DATABASE_URL", "postgres://weir:secret@db/weir"); err != nil {
		t.Error(err)
	}
}
