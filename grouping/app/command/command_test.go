package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

const entries = `{"level":"error","message":"checkout failed","error":{"type":"Error","message":"no cart","stack_trace":["at renderCart (https://a.example/assets/index-BqR3_x9k.js:1:112)"]}}
{"level":"info","message":"cart opened"}
{"type":"Error","message":"no cart","stack_trace":["at renderCart (https://a.example/assets/index-Ab-d_x1k.js:1:112)"]}
`

// Each entry with an error is printed with its
// frames and its rule; others are skipped.
func TestFingerprint(t *testing.T) {
	var out strings.Builder
	if err := printFingerprints(strings.NewReader(entries), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("printed\n%s", out.String())
	}
	var p printed
	if err := json.Unmarshal([]byte(lines[1]), &p); err != nil || p.Line != 3 || p.Language != "javascript" || len(p.Hashes) != len(grouping.Levels) || !p.Hashes[2].Decides ||
		p.Exceptions[0].Frames[0].Function != "renderCart" || p.Rule == "" || p.Parts[0].Value != "Error" {
		t.Errorf("%v\n%s", err, lines[1])
	}
	if err := printFingerprints(strings.NewReader("{"), &out); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("half an entry: %v", err)
	}
}
