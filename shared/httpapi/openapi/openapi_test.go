package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/testenv"
)

type ownerBody struct {
	Name string `json:"name"`
}

type thingBody struct {
	ID     string           `json:"id" description:"Its id"`
	Bytes  int64            `json:"bytes,omitempty" minimum:"1"`
	State  *string          `json:"state" enum:"on,off"`
	Tags   []string         `json:"tags" enum:"a,b" maxItems:"2"`
	Owner  *ownerBody       `json:"owner" description:"null: nobody"`
	Counts map[string]int64 `json:"counts"`
	Late   *time.Time       `json:"late,omitempty"`
	Free   json.RawMessage  `json:"free" type:"object"`
}

type thingsQuery struct {
	Tags []string `query:"tag" description:"With one of these"`
	httpapi.Page
}

var operations = []openapi.Operation{
	{
		Route: "GET /v1/things", ID: "listThings", Summary: "The things", Scopes: []string{"things:read", "admin"}, Query: thingsQuery{},
		Answer: openapi.Answer{Type: httpapi.List[thingBody]{}, Texts: []openapi.Text{{Media: "text/csv", Description: "A head and rows"}}},
		Handle: func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(http.StatusOK); return nil },
	},
	{
		Route: "POST /v1/things/{thing}", ID: "createThing", Summary: "Make a thing", Description: "At once.",
		Headers: struct {
			Key string `header:"Idempotency-Key" maxLength:"255"`
		}{},
		Body: openapi.Body{Type: struct {
			Name  string  `json:"name" required:"true"`
			Late  *string `json:"late" format:"date-time"`
			Limit *int    `json:"limit" nullable:"true"`
		}{}},
		Answer:   openapi.Answer{Status: http.StatusCreated, Type: thingBody{}},
		Problems: map[int]string{http.StatusConflict: "There is one"},
	},
	{
		Route: "PUT /v1/things", ID: "setThings", Scopes: []string{openapi.Anybody}, Body: openapi.Body{Type: []ownerBody{}, MaxItems: 3, Optional: true},
		Answer: openapi.Answer{Type: []ownerBody{}}, Problems: map[int]string{http.StatusBadRequest: "No"},
	},
	{Route: "DELETE /v1/things", Written: []byte(`{"operationId":"removeThings"}`)},
}

var module = openapi.Module{
	Name: "things", Tag: "things", Description: "Things", Credential: openapi.ServiceToken,
	Problems: map[int]string{http.StatusTooManyRequests: "Too many"},
}

// What a document has at a place, by the names that lead there.
func TestDocument(t *testing.T) {
	document := module.Document(operations)
	for place, want := range map[string]string{
		"paths,/v1/things,get,security":                                      `[{"thingsServiceToken":["things:read"]},{"thingsServiceToken":["admin"]}]`,
		"paths,/v1/things,get,responses,200,content,text/csv,schema":         `{"description":"A head and rows","type":"string"}`,
		"paths,/v1/things,get,responses,200,content,application/json,schema": `{"$ref":"#/components/schemas/ThingsThingList"}`,
		"paths,/v1/things,get,responses,200,description":                     `"OK"`,
		"paths,/v1/things,get,responses,429,headers,Retry-After":             `{"$ref":"#/components/headers/ThingsRetryAfter"}`,
		"paths,/v1/things/{thing},post,description":                          `"At once."`,
		"paths,/v1/things/{thing},post,responses,409,description":            `"There is one"`,
		"paths,/v1/things/{thing},post,requestBody,required":                 `true`,
		"components,schemas,ThingsThingList,properties,items,items":          `{"$ref":"#/components/schemas/ThingsThing"}`,
		"components,schemas,ThingsThing,required":                            `["id","state","tags","owner","counts","free"]`,
		"components,schemas,ThingsThing,properties,bytes":                    `{"format":"int64","minimum":1,"type":"integer"}`,
		"components,schemas,ThingsThing,properties,state":                    `{"enum":["on","off",null],"type":["string","null"]}`,
		"components,schemas,ThingsThing,properties,tags":                     `{"items":{"enum":["a","b"],"type":"string"},"maxItems":2,"type":"array"}`,
		"components,schemas,ThingsThing,properties,owner":                    `{"anyOf":[{"$ref":"#/components/schemas/ThingsOwner"},{"type":"null"}],"description":"null: nobody"}`,
		"components,schemas,ThingsThing,properties,counts":                   `{"additionalProperties":{"format":"int64","type":"integer"},"type":"object"}`,
		"components,schemas,ThingsThing,properties,late":                     `{"format":"date-time","type":"string"}`,
		"components,schemas,ThingsThing,properties,free":                     `{"type":"object"}`,
		"paths,/v1/things,delete":                                            `{"operationId":"removeThings"}`,
		"paths,/v1/things,put,security":                                      `[]`,
		"paths,/v1/things,put,responses": `{"200":{"content":{"application/json":{"schema":{"items":{"$ref":"#/components/schemas/ThingsOwner"},"type":"array"}}},"description":"OK"},` +
			`"400":{"content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/ThingsProblem"}}},"description":"No"}}`,
		"paths,/v1/things,put,requestBody": `{"content":{"application/json":{"schema":{"items":{"additionalProperties":false,"properties":{"name":{"type":"string"}},"type":"object"},` +
			`"maxItems":3,"type":"array"}}},"required":false}`,
		"components,schemas,ThingsProblem,properties,errors,items": `{"$ref":"#/components/schemas/ThingsFault"}`,
		"components,securitySchemes,thingsServiceToken,scheme":     `"bearer"`,
		"paths,/v1/things/{thing},post,requestBody,content,application/json,schema": `{"additionalProperties":false,"properties":{"late":{"format":"date-time","type":"string"},` +
			`"limit":{"type":["integer","null"]},"name":{"type":"string"}},"required":["name"],"type":"object"}`,
		"paths,/v1/things,get,parameters": `[{"description":"With one of these","explode":true,"in":"query","name":"tag","required":false,` +
			`"schema":{"items":{"type":"string"},"type":"array"}},` +
			`{"description":"Most items of a page","in":"query","name":"limit","required":false,"schema":{"default":100,"maximum":1000,"minimum":1,"type":"integer"}},` +
			`{"description":"next_cursor of the page before","in":"query","name":"cursor","required":false,"schema":{"type":"string"}}]`,
		"paths,/v1/things/{thing},post,parameters": `[{"description":"Id of the thing","in":"path","name":"thing","required":true,` +
			`"schema":{"maxLength":64,"minLength":1,"pattern":"^[A-Za-z0-9_-]+$","type":"string"}},` +
			`{"in":"header","name":"Idempotency-Key","required":false,"schema":{"maxLength":255,"type":"string"}}]`,
	} {
		if got := at(t, document, strings.Split(place, ",")); got != want {
			t.Errorf("%s: got %s\nwant %s", place, got, want)
		}
	}
}

func at(t *testing.T, document []byte, names []string) string {
	t.Helper()
	var found any
	testenv.Must(t, json.Unmarshal(document, &found))
	for _, name := range names {
		members, _ := found.(map[string]any)
		found = members[name]
	}
	text, err := json.Marshal(found)
	testenv.Must(t, err)
	return string(text)
}

// A route refuses the parameters that its query lacks.
func TestMount(t *testing.T) {
	router := chi.NewRouter()
	operations[0].Mount(router)
	for query, want := range map[string]int{"": 200, "?tag=a&tag=b&limit=1": 200, "?limit=1&limit=2": 400, "?tags=a": 400} {
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v1/things"+query, nil))
		if answer.Code != want {
			t.Errorf("%q: %d %s, want %d", query, answer.Code, answer.Body, want)
		}
	}
}
