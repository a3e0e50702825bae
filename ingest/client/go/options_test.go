package weir

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsSayWhatIsWrong(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"WEIR_BASE_URL to https://HOST/v1": {APIKey: testKey},
		"begin it with https:":             {BaseURL: "http://weir.test/v1", APIKey: testKey},
		"not of the form":                  {BaseURL: "weir.test", APIKey: testKey},
		"WEIR_API_KEY to a key":            {BaseURL: "https://weir.test/v1"},
		"of 9 characters is not one":       {BaseURL: "https://weir.test/v1", APIKey: "other_key"},
		"mixed up":                         {BaseURL: testKey, APIKey: "https://weir.test/v1"},
		"WEIR_CA_FILE names":               {BaseURL: "https://weir.test/v1", APIKey: testKey, CAFile: filepath.Join(folder, "missing.pem")},
		"has no certificate":               {BaseURL: "https://weir.test/v1", APIKey: testKey, CAFile: empty},
	} {
		t.Setenv("WEIR_BASE_URL", "")
		t.Setenv("WEIR_API_KEY", "")
		t.Setenv("WEIR_CA_FILE", "")
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestDefaultsAreOfTheEnvironment(t *testing.T) {
	t.Setenv("WEIR_BASE_URL", "https://weir.test/v1/")
	t.Setenv("WEIR_API_KEY", testKey+"\n")
	c, err := New(Options{})
	if err != nil || c.sender.url != "https://weir.test/v1/logs" {
		t.Fatal(err, c)
	}
	shut(t, c)
}

func TestTheKeyIsNeverPrinted(t *testing.T) {
	o := Options{BaseURL: "https://weir.test/v1", APIKey: testKey}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, c) // else printing what only its goroutines read is a race
	text, err := json.Marshal(struct{ Key Secret }{o.APIKey})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(c, HandlerOptions{})
	printed := string(text)
	for _, v := range []any{o, o.APIKey, &o, c, h, c.sender, struct{ C *Client }{c}, struct{ c *Client }{c}} {
		printed += fmt.Sprintf("%v %+v %#v %s", v, v, v, v)
	}
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", o.APIKey, "options", o, "client", c)
	if printed += out.String(); strings.Contains(printed, "0123456789abcdef") {
		t.Errorf("the key is in %s", printed)
	}
}
