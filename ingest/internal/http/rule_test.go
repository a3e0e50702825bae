package http

import "testing"

// Rules have versions, which can be read and restored; who comes second learns
// of it; and a preview changes nothing.
func TestRules(t *testing.T) {
	routes := newKeptRoutes(t)
	const path = "/v1/projects/prj_1/ingest-rules"
	take(t, routes, secret, []step{
		{`GET ` + path, 200, `{"version":0,"set_at":null,"actor":null,"actor_name":null,"note":null,"restored":null,"rules":""}`},
		{`GET /v1/projects/prj_2/ingest-rules`, 404, `prj_2`},
		{`PUT /v1/projects/prj_2/ingest-rules {"rules":"drop a"}`, 404, `prj_2`},
		{`POST /v1/projects/prj_2/ingest-rules/preview {"rules":"drop a"}`, 404, `prj_2`},
		{`GET /v1/projects/prj_2/ingest-rules/versions`, 404, `prj_2`},
		{`POST ` + path + `/preview {"rules":"drop level:x"}`, 400, `Line 1, character 6: \"level:x\" is not a level.`},
		{`POST ` + path + `/preview {"rules":"drop \"1\"\nredact /2/"}`, 200,
			`{"entries":3,"kept":2,"dropped":1,"sampled":0,"redacted":1,"level_set":0,"bytes":51,"charged_bytes":34,"kept_bytes":34,`},
		{`POST ` + path + `/preview {"rules":"redact /2/"}`, 200, `"before":"{\"message\":\"\u003c2\u003e\"}","after":"{\"message\":\"\u003c*\u003e\"}","lines":[1]}]}`},
		{`PUT ` + path + ` {"rules":"drop level:x"}`, 400, `"pointer":"/rules"`},
		{`PUT ` + path + ` {"rules":"drop a","note":"a\nb"}`, 400, `"pointer":"/note"`},
		{`PUT ` + path + ` {"rules":"drop noise","note":"because","if_version":0}`, 200, `"version":1,"set_at":"2026-11-21T12:00:00Z","actor":"key_1"`},
		{`PUT ` + path + ` {"rules":"drop noise","if_version":0}`, 200, `"version":1`},
		{`PUT ` + path + ` {"rules":"drop other","if_version":0}`, 409, `"version":1`},
		{`PUT ` + path + ` {"rules":""}`, 200, `"version":2`},
		{`POST ` + path + `/versions/1/restore {"note":"again","if_version":1}`, 409, `"version":2`},
		{`POST ` + path + `/versions/1/restore {"note":"again"}`, 200, `"version":3`},
		{`POST ` + path + `/versions/9/restore {}`, 404, `9`},
		{`GET ` + path + `/versions/1`, 200, `"note":"because","restored":null,"rules":"drop noise"}`},
		{`GET ` + path + `/versions/9`, 404, `9`},
		{`GET ` + path + `/versions/x`, 404, `x`},
		{`GET ` + path + `/versions?limit=1`, 200, `"restored":1}],"next_cursor":"`},
		{`GET ` + path, 200, `"version":3`},
	})
	take(t, routes, narrow, []step{
		{`GET ` + path, 200, `"rules":"drop noise"`},
		{`PUT ` + path + ` {"rules":"drop a"}`, 403, `"forbidden"`},
	})
}
