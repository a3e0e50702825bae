package httpapi_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/httpapi"
)

// A User-Agent is cut to whole characters, and can't harm a terminal
// or a database.
func TestClipClient(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "curl/8.5.0": "curl/8.5.0", "a\x00b\x1b[31mc\u0085": "ab[31mc", "a\xffb": "ab",
		"curl weir_" + strings.Repeat("ab", 24):                                   httpapi.Redact("curl weir_" + strings.Repeat("ab", 24)),
		"curl weir_" + strings.Repeat("ab", 12) + "\t" + strings.Repeat("ab", 12): httpapi.Redact("curl weir_" + strings.Repeat("ab", 24)),
		strings.Repeat("x", 300):                                                  strings.Repeat("x", 200), "x" + strings.Repeat("ä", 300): "x" + strings.Repeat("ä", 99),
	} {
		if got := httpapi.ClipUserAgent(text, 200); got != want || !utf8.ValidString(got) {
			t.Errorf("ClipUserAgent(%q) = %q, want %q", text, got, want)
		}
	}
}
