package http

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

func serveShipper(handle func(http.ResponseWriter, *http.Request) error, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpapi.Handle(handle)(w, newPost(strings.NewReader(body), headers...))
	return w
}

const pushed = `{"streams":[{"stream":{"app":"cart"},"values":[["1769860800000000000","no cart"],["1769860800000000000","` + "%s" + `"]]}]}`

// Lines are kept as the entries that they become. Loki's clients take only
// 204 for success, so what is rejected is only counted.
func TestLoki(t *testing.T) {
	log := new(textLog)
	in := newIntake(t, log, plenty)
	const kept = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"no cart","metadata":{"app":"cart"}}` + "\n"
	w := serveShipper(in.PostLoki, strings.Replace(pushed, "%s", strings.Repeat("x", 10241), 1))
	if w.Code != http.StatusNoContent || w.Body.Len() > 0 || log.lines != kept || w.Header().Get("X-RateLimit-Limit") == "" {
		t.Errorf("%d %s %v: kept %s", w.Code, w.Body, w.Header(), log.lines)
	}
	// a PushRequest with {app="cart"}, the same time and line
	wire := "\x0a\x21\x0a\x0c{app=\"cart\"}\x12\x11\x0a\x06\x08\xc0\xdd\xf7\xcb\x06\x12\x07no cart"
	for _, headers := range [][]string{{"Content-Encoding", "snappy"}, {}} {
		log.lines = ""
		w = serveShipper(in.PostLoki, string(s2.EncodeSnappy(nil, []byte(wire))), append(headers, "Content-Type", typeProtobuf)...)
		if w.Code != http.StatusNoContent || log.lines != kept {
			t.Errorf("protobuf %v: %d %s: kept %s", headers, w.Code, w.Body, log.lines)
		}
	}
	if w := serveShipper(in.PostLoki, `{"streams":[]}`); w.Code != http.StatusNoContent {
		t.Errorf("nothing: %d %s", w.Code, w.Body)
	}
	if use := in.Bodies.Use(); use != (BodyUse{}) {
		t.Errorf("memory is still lent: %+v", use)
	}
}

// Each document is answered. One that is invalid leaves the others valid, and
// is not sent again.
func TestBulk(t *testing.T) {
	log := new(textLog)
	in := newIntake(t, log, plenty)
	document := func(message string) string {
		return `{"create":{"_index":"logs"}}` + "\n" + `{"@timestamp":"2026-01-31T12:00:00Z","message":"` + message + `"}` + "\n"
	}
	long := strings.Repeat("x", 10241)
	w := serveShipper(in.PostBulk, document("a")+document(long)+`{"index":{}}`+"\nno JSON\n"+document("b"), "Content-Type", "application/x-ndjson")
	const kept = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"%","metadata":{"_index":"logs"}}` + "\n"
	const fine = `{"create":{"_index":"logs","status":201}}`
	got := w.Body.String()
	for _, part := range []string{
		`"errors":true,"items":[` + fine + `,{"create":{"_index":"logs","status":400,"error":{"type":"message_too_large","reason":"The message has 10241 bytes`,
		`{"index":{"_index":"","status":400,"error":{"type":"invalid_document"`, `},` + fine + `]}`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the answer\n%s\nlacks %s", got, part)
		}
	}
	if w.Code != http.StatusOK || log.lines != strings.Replace(kept, "%", "a", 1)+strings.Replace(kept, "%", "b", 1) || w.Header().Get("X-Elastic-Product") == "" {
		t.Errorf("%d %v: kept %s", w.Code, w.Header(), log.lines)
	}
	if w := serveShipper(in.PostBulk, "{\"create\":{}}\nno JSON\n"); w.Code != http.StatusOK || strings.Count(w.Body.String(), `"status":400`) != 1 {
		t.Errorf("none readable: %d %s", w.Code, w.Body)
	}
	log.lines = ""
	if w := serveShipper(in.PostBulk, document(long)); w.Code != http.StatusOK || strings.Count(w.Body.String(), `"status":400`) != 1 || log.lines != "" {
		t.Errorf("none valid: %d %s: kept %s", w.Code, w.Body, log.lines)
	}
	w = serveShipper(in.PostBulk, document("a"))
	if w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != `{"took":0,"errors":false,"items":[`+fine+`]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Shippers that can't send a header of their own have the key as a password
// or a token. What may be sent again is 429, 500 or 503 with Retry-After.
func TestShippers(t *testing.T) {
	down := newIntake(t, &memoryLog{err: errors.New("no broker")}, plenty)
	empty := newIntake(t, new(memoryLog), ingest.Account{})
	up := newIntake(t, new(memoryLog), plenty)
	const document = "{\"create\":{}}\n{\"message\":\"a\"}\n"
	loki, bulk := strings.Replace(pushed, "%s", "a", 1), document
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+secret))
	for _, c := range []struct {
		name    string
		handle  func(http.ResponseWriter, *http.Request) error
		body    string
		headers []string
		status  int
		want    string
	}{
		{"bearer", up.PostLoki, loki, []string{"X-Api-Key", "", "Authorization", "Bearer " + secret}, 401, "without Bearer"},
		{"wrong", up.PostBulk, bulk, []string{"X-Api-Key", "weir_x"}, 401, "invalid_api_key"},
		{"no broker", down.PostLoki, loki, nil, 500, "unavailable"},
		{"no broker", down.PostBulk, bulk, nil, 503, "unavailable"},
		{"quota", empty.PostLoki, loki, nil, 429, "quota_exceeded"},
		{"quota", empty.PostBulk, bulk, nil, 429, "quota_exceeded"},
		{"no push", up.PostLoki, "[]", nil, 400, "there is [] instead of {. Send protobuf"},
		{"no Snappy", up.PostLoki, "hello", []string{"Content-Type", typeProtobuf}, 400, "invalid_loki"},
		{"no action", up.PostBulk, "{}\n{}\n", nil, 400, "invalid_bulk"},
		{"media type", up.PostLoki, loki, []string{"Content-Type", "text/plain"}, 400, "application/x-protobuf"},
		{"media type", up.PostBulk, bulk, []string{"Content-Type", "text/plain"}, 400, "application/x-ndjson"},
		{"labels", up.PostLoki, `{"streams":[{"stream":{` + strings.TrimSuffix(strings.Repeat(`"a":"b",`, 1001), ",") + `},"values":[["1","a"]]}]}`, nil, 400, "invalid_loki"},
	} {
		w := serveShipper(c.handle, c.body, c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || (w.Header().Get("Retry-After") != "") != (c.status == 429 || c.status >= 500) {
			t.Errorf("%s: %d %s %v", c.name, w.Code, w.Body, w.Header())
		}
	}
	for _, authorization := range []string{basic, "ApiKey " + secret} {
		r := newPost(bytes.NewReader([]byte(bulk)), "Authorization", authorization)
		r.Header.Del("X-Api-Key")
		w := httptest.NewRecorder()
		if httpapi.Handle(up.PostBulk)(w, r); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", authorization, w.Code, w.Body)
		}
	}
}

// A small body that claims to unpack to gigabytes gets no memory for them.
func TestSnappyBomb(t *testing.T) {
	in := newIntake(t, new(memoryLog), plenty)
	in.Bodies = NewBodies(BodyLimits{Bytes: 32 << 20, Max: 16 << 20, Requests: 8, LargeBodies: 8}, in.Service.Clock)
	w := serveShipper(in.PostLoki, "\xff\xff\xff\xff\x0f\x00a", "Content-Type", typeProtobuf)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "body_too_large") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if use := in.Bodies.Use(); use.SmallBytes+use.LargeBytes > 0 {
		t.Errorf("memory is still lent: %+v", use)
	}
}
