//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// By keyboard only, a person finds the patterns of messages, the new ones, their
// entries, and a chart by a field.
func TestPatterns(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	var list []entry
	for i := range 300 {
		e := entry{Level: "info", Message: fmt.Sprintf("GET /products/%d %d in %d ms", 1000+i, 200, i%70)}
		e.Metadata = map[string]any{"service": []string{"storefront", "search", "billing"}[i%7%3]}
		switch {
		case i%9 == 0:
			e.Level, e.Message = "warn", fmt.Sprintf("user %s logged in from 10.0.%d.7", []string{"ada", "grace", "linus", "ken", "tim", "radia", "alan"}[i%7], i%200)
		case i%20 == 0:
			e.Level, e.Message = "error", fmt.Sprintf("payment of order %d declined: insufficient funds "+strings.Repeat("and more ", i%3*8), i)
		}
		list = append(list, e)
	}
	list[0].Message, list[0].Metadata["service"] = strings.Repeat("m", 90)+" "+strings.Repeat("n", 3000), strings.Repeat("s", 250)
	in.send(t, w.key.Key, list...)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/logs")
	b.awaitText("GET /products/")
	b.leave("a", "Patterns", "Logs")
	b.awaitText("user <*> logged in from <ip>")
	b.check("patterns")
	b.inspect("patterns", "/console/logs?view=patterns")
	b.leave("a", "Only new ones", "Logs")
	b.awaitText("All patterns")
	b.leave("a", "user <*> logged in from <ip>", "Logs")
	b.await(`document.getElementById("field-q").value === '"user" "logged in from"' && document.querySelectorAll(".entries .message").length > 30`)
	b.open("/console/logs")
	b.leave("a", "chart by service", "Logs")
	b.await(`document.querySelector(".histogram .series-0") && document.querySelector(".legend").textContent.includes("storefront")`)
	b.inspect("a chart by a field", "/console/logs?chart=service")
	b.blameless("patterns")
}
