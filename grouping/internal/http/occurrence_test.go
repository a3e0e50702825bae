package http_test

import (
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
)

// A group selects its entries, and says by what search all of them are found.
func TestSelect(t *testing.T) {
	api := newAPI(t)
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=alpha")
	alpha := "/v1/error-groups/" + list["items"].([]any)[0].(map[string]any)["id"].(string)
	_, group := get(t, api, alpha)
	want := "map[from:2026-11-21T12:00:00Z project:shop q:error.type:\"AlphaError\" to:2026-11-21T12:00:02.000001Z]"
	if got := fmt.Sprint(group["entries"]); got != want {
		t.Errorf("is searched by %s, want %s", got, want)
	}
	if status, found := send(t, api, "POST", alpha+"/select", groupingtest.Entries(""), ""); status != 200 || fmt.Sprint(found["entries"]) != "[entry0 entry2]" {
		t.Errorf("%d %v", status, found)
	}
	elsewhere := strings.ReplaceAll(groupingtest.Entries(""), `"shop"`, `"cart"`)
	if status, found := send(t, api, "POST", alpha+"/select", elsewhere, ""); status != 200 || fmt.Sprint(found["entries"]) != "[]" {
		t.Errorf("of another project: %d %v", status, found)
	}
	item := `{"id":"e","project":"shop","environment":"","received_at":"2026-11-21T12:00:00Z","entry":{}}`
	entry := func(day, text string) string {
		return `{"items":[` + strings.Replace(strings.Replace(item, "2026-11-21", day, 1), "{}", text, 1) + `]}`
	}
	for name, c := range map[string]struct {
		path, body string
		want       int
	}{
		"no group":          {"/v1/error-groups/grp_0/select", groupingtest.Entries(""), 404},
		"no entries":        {alpha + "/select", `{"items":[]}`, 200},
		"no objects":        {alpha + "/select", `{"items":[{"id":"e","entry":7}]}`, 400},
		"unknown member":    {alpha + "/select", groupingtest.Entries(`,"more":1`), 400},
		"as many as may be": {alpha + "/select", `{"items":[` + strings.Repeat(item+",", 199) + item + `]}`, 200},
		"wrong kinds":       {alpha + "/select", entry("2026-11-21", `{"timestamp":5,"level":[],"message":{},"environment":1,"error":{"type":7,"message":[1],"stack_trace":"x"},"metadata":4}`), 200},
		"no texts":          {alpha + "/select", entry("2026-11-21", `{"error":{"stack_trace":[1,{"a":[]}, null,"\u0000"],"type":"\u0000"},"environment":"\u0000","metadata":{"debug_ids":[1],"release":"\u0000"}}`), 200},
		"deep":              {alpha + "/select", entry("2026-11-21", `{"error":{},"metadata":`+strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat("}", 9000)+`}`), 200},
		"before all days":   {alpha + "/select", entry("0001-01-01", `{"error":{"type":"x"}}`), 200},
		"on the first days": {alpha + "/select", entry("1970-01-10", `{"timestamp":"1969-12-30T00:00:00Z","error":{"type":"x"}}`), 200},
		"on the last day":   {alpha + "/select", entry("9999-12-31", `{"error":{"type":"x"}}`), 200},
		"too many":          {alpha + "/select", `{"items":[` + strings.Repeat(item+",", 200) + item + `]}`, 400},
		"too much":          {alpha + "/select", `{"items":[` + strings.Replace(item, "{}", `{"message":"`+strings.Repeat("x", 4<<20)+`"}`, 1) + `]}`, 400},
	} {
		if status, body := send(t, api, "POST", c.path, c.body, ""); status != c.want {
			t.Errorf("%s: %d %v, want %d", name, status, body, c.want)
		}
	}
}

// A slowBody is sent once all others have begun.
type slowBody struct {
	begun chan<- bool
	end   <-chan bool
}

func (b slowBody) Read([]byte) (int, error) {
	b.begun <- true
	<-b.end
	return 0, io.EOF
}

// Few bodies of selections are read at once, and a few more wait.
func TestSelectionsTakeTurns(t *testing.T) {
	const atOnce, waiting = 8, 16
	api := newAPI(t)
	begun, end, answers := make(chan bool, atOnce+waiting), make(chan bool), make(chan int)
	for range atOnce + waiting + 1 {
		go func() {
			r := httptest.NewRequest(nethttp.MethodPost, "/v1/error-groups/grp_0/select", slowBody{begun, end})
			r.Header.Set("X-Api-Key", key)
			r.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			api.ServeHTTP(answer, r)
			answers <- answer.Code
		}()
	}
	if status := <-answers; status != nethttp.StatusTooManyRequests {
		t.Errorf("one too many: %d", status)
	}
	for range atOnce {
		<-begun
	}
	if len(begun) > 0 {
		t.Errorf("%d more are read", len(begun))
	}
	close(end)
	for range atOnce + waiting {
		if status := <-answers; status != nethttp.StatusBadRequest {
			t.Errorf("an empty body: %d", status)
		}
	}
}
