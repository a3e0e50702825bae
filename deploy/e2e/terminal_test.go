package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// inTerminal follows the page for those who read logs in a terminal.
func inTerminal(t *testing.T, dataDir string) {
	script := []string{"set -eux"}
	for _, part := range [][2]string{{"cli.md", "Weir in a terminal"}, {"cli.md", "Installations by name"}, {"cli.md", "Completion"}} {
		script = append(script, docstest.BlocksOf(t, part[0], part[1])...)
	}
	printed := inShell(t, dataDir, strings.Join(script, "\n"))
	for _, promised := range []string{"GiB used, ", `{"balance":{`, "*  local  key token  prj_", "local is still in use"} {
		if !strings.Contains(printed, promised) {
			t.Errorf("nothing printed has %s: %s", promised, printed)
		}
	}
}

// assisted asks as an assistant does: each example of the tool's description
// is a query.
func assisted(t *testing.T, dataDir string) {
	served := exec.CommandContext(t.Context(), programs.Build(t, "deploy/cmd/weir"), "mcp", "--data-dir="+dataDir)
	served.Env = []string{"HOME=" + t.TempDir()}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: served}, nil)
	testenv.Must(t, err)
	defer session.Close()
	for _, call := range []struct{ tool, argument, value, want string }{
		{"search_logs", "query", `timeout "no route" level:error environment:prod OR metadata.user.id:42 (status:>=500 -time*) exists:trace_id`, `"items":[`},
		{"search_logs", "query", "level:loud", "Use level:debug, info, warn, error or fatal"},
		{"log_stats", "every", "auto", `"buckets":[`},
		{"log_patterns", "query", "level:error", `"patterns":[`},
		{"list_error_groups", "text", "total", `"items":[`},
		{"get_usage", "by", "key,outcome", `"balance":{`},
		{"get_error_group", "id", "grp_0", "404 not_found"},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: map[string]any{call.argument: call.value}})
		testenv.Must(t, err)
		if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, call.want) {
			t.Errorf("%s %s: %s", call.tool, call.value, text)
		}
	}
}
