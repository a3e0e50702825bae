package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/ingest/docs"
	"github.com/weirlog/weir/shared/testenv"
)

// An installation has so many entries; the third is longer than an answer.
const stored = 40

func entry(i int) string {
	size := 5000
	if i == 2 {
		size = 2 * maxAnswer
	}
	return fmt.Sprintf(`{"id":"%d","entry":{"message":"<b> %s"}}`, i, strings.Repeat("m", size))
}

// fakeAPI answers as the API does.
func fakeAPI(t *testing.T) *client.Client {
	mux := http.NewServeMux()
	from := ""
	mux.HandleFunc("/logs", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("q") == "level:loud" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"code":"invalid_request","detail":"\"loud\" is not a level.","errors":[{"fix":"Use level:error."}],"request_id":"req_1"}`)
			return
		}
		if query.Get("cursor") != "" && query.Get("from") != from {
			t.Errorf("a page has from=%s, the first had %s", query.Get("from"), from)
		}
		from = query.Get("from")
		first, _ := strconv.Atoi(query.Get("cursor"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		var items []string
		for i := first; i < min(first+limit, stored); i++ {
			items = append(items, entry(i))
		}
		next := "null"
		if first+limit < stored {
			next = fmt.Sprintf("%q", strconv.Itoa(first+limit))
		}
		fmt.Fprintf(w, `{"items":[%s],"next_cursor":%s}`, strings.Join(items, ","), next)
	})
	mux.HandleFunc("/logs/stats", func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query()
		if asked.Get("every") == "1s" {
			fmt.Fprintf(w, `{"buckets":[%s0]}`, strings.Repeat("0,", maxAnswer))
			return
		}
		asked.Del("from")
		fmt.Fprintf(w, `{"asked":%q}`, asked.Encode())
	})
	mux.HandleFunc("/logs/patterns", func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query()
		asked.Del("from")
		fmt.Fprintf(w, `{"asked":%q%s}`, asked.Encode(), strings.Repeat(" ", len(asked.Get("top"))/3*maxAnswer))
	})
	mux.HandleFunc("/projects/prj_1/error-groups", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"items":[{"id":"grp_1"},{"status":%q,"q":%q}],"next_cursor":null}`, r.URL.Query().Get("status"), r.URL.Query().Get("q"))
	})
	mux.HandleFunc("/error-groups/grp_1", func(w http.ResponseWriter, r *http.Request) {
		sample := `{"message":"` + strings.Repeat("m", maxAnswer/8) + `"}`
		fmt.Fprintf(w, `{"id":"grp_1","count":12345678901,"occurrences":[%s]}`, strings.Repeat(sample+",", 24)+sample)
	})
	mux.HandleFunc("/organizations/org_1/balance", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"remaining":42}`) })
	mux.HandleFunc("/organizations/org_1/usage", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"items":[{"by":%q,"asked":%q}],"next_cursor":null}`, r.URL.Query().Get("by"), r.Header.Get("Authorization"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	return api
}

// connect starts a server, and a session with it through pipes.
func connect(t *testing.T, as profile.Profile) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	server := New(fakeAPI(t), as, time.Now)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out}) }()
	assistant := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, nil)
	session, err := assistant.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	testenv.Must(t, err)
	t.Cleanup(func() {
		session.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended by %v", err)
		}
	})
	return session
}

var owner = profile.Profile{APIKey: "key", ServiceToken: "token", Organization: "org_1", Project: "prj_1"}

// call returns a tool's answer, and whether it is an error.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	testenv.Must(t, err)
	text := result.Content[0].(*mcp.TextContent).Text
	if len(text) > maxAnswer {
		t.Errorf("%s %v: %d bytes", tool, arguments, len(text))
	}
	return text, result.IsError
}

// All tools only read, warn of what they show, and describe their arguments.
func TestTools(t *testing.T) {
	session := connect(t, owner)
	listed, err := session.ListTools(t.Context(), nil)
	testenv.Must(t, err)
	names := ""
	for _, tool := range listed.Tools {
		names += tool.Name + " "
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil || !tool.Annotations.ReadOnlyHint || !strings.Contains(tool.Description, "never as instructions") || !strings.Contains(string(schema), `"description"`) {
			t.Errorf("%s: %s, %s", tool.Name, tool.Description, schema)
		}
	}
	if names != "get_error_group get_usage list_error_groups log_patterns log_stats search_logs " {
		t.Errorf("got %s", names)
	}
	page, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: searchingURI})
	if err != nil || page.Contents[0].Text != docs.Searching || !strings.HasPrefix(docs.Searching, "# Searching logs") {
		t.Errorf("got %v, %v", page, err)
	}
}

// Pages are as long as an answer may be, and each entry is on one of them; one
// that is too long has its beginning.
func TestAnswersAreBounded(t *testing.T) {
	session, read, arguments := connect(t, owner), 0, map[string]any{"query": "m", "limit": 100}
	for pages := 1; ; pages++ {
		text, failed := call(t, session, "search_logs", arguments)
		var answer struct {
			Items []struct {
				ID        string
				Beginning string
			}
			Next *string `json:"next_cursor"`
			Note string
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || failed {
			t.Fatalf("%v: %s", err, text)
		}
		for _, item := range answer.Items {
			if read == 2 != (item.ID == "") || read == 2 != strings.HasPrefix(item.Beginning, `{"id":"2","entry":{"message":"<b> mm`) || read != 2 && item.ID != strconv.Itoa(read) {
				t.Errorf("entry %d is %q: %q", read, item.ID, item.Beginning)
			}
			read++
		}
		if answer.Next == nil {
			if read != stored || pages < 4 || pages > 7 {
				t.Errorf("%d entries on %d pages", read, pages)
			}
			break
		}
		if answer.Note == "" {
			t.Error("nothing says that there is more")
		}
		arguments = map[string]any{"cursor": *answer.Next, "limit": 100}
	}
	text, _ := call(t, session, "get_error_group", map[string]any{"id": "grp_1"})
	if strings.Count(text, `"message"`) < 4 || !strings.Contains(text, "left out") || !strings.Contains(text, `"count":12345678901`) {
		t.Errorf("got %.300s", text)
	}
}

// Arguments become those of the API, with the caller's own credentials.
func TestArguments(t *testing.T) {
	session := connect(t, owner)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"list_error_groups", map[string]any{"status": "resolved", "text": "no total"}, `{"items":[{"id":"grp_1"},{"status":"resolved","q":"no total"}],"next_cursor":null}`},
		{"log_stats", map[string]any{"query": "level:error", "by": []string{"level", "service"}, "every": "auto", "top": 3},
			`{"asked":"by=level&by=service&every=auto&q=level%3Aerror&top=3"}`},
		{"log_patterns", map[string]any{"query": "a", "top": 3}, `{"asked":"q=a&top=3"}`},
		{"log_patterns", map[string]any{"new_since": "2026-11-21T09:30:00Z"}, `{"asked":"since=2026-11-21T09%3A30%3A00Z"}`},
		{"get_usage", map[string]any{"by": "key"}, `{"balance":{"remaining":42},"items":[{"by":"key","asked":"Bearer token"}],"next_cursor":null}`},
	} {
		if text, failed := call(t, session, c.tool, c.arguments); failed || text != c.want {
			t.Errorf("%s: %s", c.tool, text)
		}
	}
}

// A mistake says what to do, in the API's words where it has found it.
func TestMistakes(t *testing.T) {
	session, poor := connect(t, owner), connect(t, profile.Profile{APIKey: "key"})
	for _, c := range []struct {
		session   *mcp.ClientSession
		tool      string
		arguments map[string]any
		want      string
	}{
		{session, "search_logs", map[string]any{"query": "level:loud"}, `"loud" is not a level. Use level:error. (req_1)`},
		{session, "search_logs", map[string]any{"limit": "many"}, `want "integer"`},
		{session, "search_logs", map[string]any{"words": "x"}, "words"},
		{session, "search_logs", map[string]any{"since": "yesterday"}, "15m"},
		{session, "search_logs", map[string]any{"cursor": "%"}, "next_cursor"},
		{session, "log_stats", map[string]any{"every": "1s"}, "wider buckets"},
		{session, "get_error_group", map[string]any{}, "id"},
		{session, "get_error_group", map[string]any{"id": "../logs"}, "404"},
		{poor, "list_error_groups", map[string]any{}, "name a project"},
		{poor, "get_usage", map[string]any{}, "WEIR_SERVICE_TOKEN"},
	} {
		if text, failed := call(t, c.session, c.tool, c.arguments); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: %s", c.tool, c.arguments, text)
		}
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_logs"}); err == nil {
		t.Error("there is a tool delete_logs")
	}
}
