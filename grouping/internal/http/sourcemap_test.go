package http_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/sourcemap"
)

const smallMap = `{"version":3,"sources":["src/a.ts"],"names":[],"mappings":"AAAA"}`

// ask sends a body that is compressed as encoding says.
func ask(t *testing.T, api nethttp.Handler, method, path, body, encoding string) (int, map[string]any) {
	t.Helper()
	return sendWith(t, api, method, path, body, nethttp.Header{"Content-Encoding": {encoding}})
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const mapsPath = "/v1/projects/shop/source-maps"

// Maps are uploaded, plain or compressed, listed in pages and deleted.
func TestSourceMaps(t *testing.T) {
	api := newAPI(t)
	status, first := ask(t, api, "POST", mapsPath+"?release=1.0&name=https://shop.example/static/app.js", smallMap, "")
	if status != 201 || first["unchanged"] != false || first["name"] != "~/static/app.js" || first["size"] != float64(len(smallMap)) || first["debug_id"] != nil {
		t.Fatalf("%d %v", status, first)
	}
	if status, again := ask(t, api, "POST", mapsPath+"?release=1.0&name=/static/app.js", packed(t, smallMap), "gzip"); status != 201 || again["unchanged"] != true || again["id"] != first["id"] {
		t.Errorf("again: %d %v", status, again)
	}
	ask(t, api, "POST", mapsPath+"?debug_id=85314830-023f-4cf1-a267-535f4e37bb17&name=b.js", smallMap, "")
	_, page := get(t, api, mapsPath+"?limit=1")
	if items := page["items"].([]any); len(items) != 1 || items[0].(map[string]any)["release"] != nil {
		t.Errorf("the first page: %v", page)
	}
	if _, page = get(t, api, mapsPath+"?limit=1&cursor="+page["next_cursor"].(string)); len(page["items"].([]any)) != 1 || page["next_cursor"] != nil {
		t.Errorf("the last page: %v", page)
	}
	if _, page = get(t, api, mapsPath+"?release=1.0"); len(page["items"].([]any)) != 1 {
		t.Errorf("of one release: %v", page)
	}
	id := first["id"].(string)
	if status, answer := ask(t, api, "DELETE", mapsPath+"/"+id, "", ""); status != 200 || answer["id"] != id {
		t.Errorf("deleted: %d %v", status, answer)
	}
	if status, _ := ask(t, api, "DELETE", mapsPath+"/"+id, "", ""); status != 404 {
		t.Errorf("deleted again: %d", status)
	}
}

// What is wrong with a map or its names is said.
func TestRefusedSourceMaps(t *testing.T) {
	api := newAPI(t)
	const named = mapsPath + "?release=1.0&name=app.js"
	large := strings.Repeat(" ", sourcemap.MaxText) + smallMap
	for _, c := range []struct {
		path, body, encoding string
		status               int
		detail               string
	}{
		{mapsPath + "?name=app.js", smallMap, "", 400, "Neither a release nor a debug id"},
		{mapsPath + "?release=1.0", smallMap, "", 400, "name"},
		{mapsPath + "?release=1.0&name=" + strings.Repeat("n", 1001), smallMap, "", 400, "longer than 1000 bytes"},
		{mapsPath + "?name=a.js&release=" + strings.Repeat("r", 201), smallMap, "", 400, "at most 200 bytes"},
		{named + "&debug_id=7", smallMap, "", 400, `The debug id is "7"`},
		{named, `{"version":3,"sources":[],"mappings":"AAAA"}`, "", 400, "names source 0, and there are 0"},
		{named, "{}", "", 400, "Only 3 is known"},
		{named, large, "", 400, "larger than 33554432 bytes"},
		{named, packed(t, large), "gzip", 400, "larger than 33554432 bytes"}, // 33 KB that become 32 MB
		{named, packed(t, smallMap)[:30], "gzip", 400, "ends early"},
		{named, smallMap, "gzip", 400, "not in the format gzip"},
		{named, smallMap, "br", 400, "not supported"},
		{"/v1/projects/lair/source-maps?name=a.js", smallMap, "", 404, "no project"},
	} {
		status, answer := ask(t, api, "POST", c.path, c.body, c.encoding)
		if text := fmt.Sprint(answer); status != c.status || !strings.Contains(text, c.detail) {
			t.Errorf("%.80s: %d %s, want %d %q", c.path, status, text, c.status, c.detail)
		}
	}
	for path, want := range map[string]int{"/v1/projects/lair/source-maps": 404, mapsPath + "?limit=0": 400, mapsPath + "?cursor=x": 400, mapsPath + "?release=%00": 400} {
		if status, answer := get(t, api, path); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, answer, want)
		}
	}
}
