//go:build browser

package browser

import (
	_ "embed"
	"fmt"
	"strings"
)

// axe is axe-core, by Deque Systems, as its package on the npm
// registry has it; its licence is beside it.
//
//go:embed testdata/axe-core/axe.min.js
var axe string

// A violation is a fault found by axe-core.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", v.ID, v.Help)
	for _, node := range v.Nodes[:min(3, len(v.Nodes))] {
		fmt.Fprintf(&text, "\n\t%s\n\t%s", node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n\t"))
	}
	return text.String()
}

func loadAxe(b *tab) {
	b.t.Helper()
	ask[bool](b, axe+"\n;true")
}

// runAxe checks the page against every rule for WCAG 2.2 A and AA and the
// best practices. The rule of target sizes is off in axe-core by default.
func runAxe(b *tab) []violation {
	b.t.Helper()
	return ask[[]violation](b, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((r) =>
		r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => ({html: n.html, failureSummary: n.failureSummary}))})))`)
}
