package http

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type sourceMapRoutes struct{ maps *groups.SourceMaps }

func sourceMapOperations(a *access, maps *groups.SourceMaps) []openapi.Operation {
	m := sourceMapRoutes{maps}
	missing := map[int]string{http.StatusNotFound: "There is no such project, or map, in the key's organization, or the key may not read it"}
	return []openapi.Operation{
		{
			Route: "POST /v1/projects/{project}/source-maps", Handle: a.repeats(m.upload), ID: "uploadSourceMap",
			Summary: "Upload the source map of a script, to show and group its errors as they were written",
			Description: "The body is the map, of at most 32 MiB, also where it is compressed (Content-Encoding: gzip). It holds for errors that are accepted " +
				"two seconds later or after that, instead of another one of the same release and name; samples of earlier errors are shown by it soon. " +
				"The same map again changes nothing.",
			Query: uploadQuery{}, Headers: uploadHeaders{}, Body: openapi.Body{Type: mapText{}},
			Answer: openapi.Answer{Status: http.StatusCreated, Type: uploadedBody{}, Description: "The map"},
			Problems: map[int]string{
				http.StatusNotFound: missing[http.StatusNotFound],
				http.StatusConflict: fmt.Sprintf("limit_reached: the organization has %d maps, or %d bytes of them", postgres.MaxMaps, postgres.MaxStored),
			},
		},
		{
			Route: "GET /v1/projects/{project}/source-maps", Handle: a.reads(m.list), ID: "listSourceMaps",
			Summary: "The source maps of a project, the newest first",
			Query:   mapsQuery{},
			Answer:  openapi.Answer{Type: httpapi.List[mapBody]{}, Description: "A page of maps"}, Problems: missing,
		},
		{
			Route: "DELETE /v1/projects/{project}/source-maps/{map}", Handle: a.repeats(m.delete), ID: "deleteSourceMap",
			Summary: "Delete a source map: errors that are accepted later are shown as they were printed",
			Query:   struct{}{}, Headers: repeatable{},
			Answer: openapi.Answer{Type: deletedBody{}, Description: "It is deleted"}, Problems: missing,
		},
	}
}

// mapText is the body of an upload, which is not decoded here.
type mapText struct{}

// JSONSchemaBytes describes it.
func (mapText) JSONSchemaBytes() ([]byte, error) {
	return []byte(`{"type": "object", "description": "A source map of version 3 (ECMA-426), plain or with sections"}`), nil
}

type uploadQuery struct {
	Name    string `query:"name" required:"true" minLength:"1" maxLength:"1000" description:"Address of the script, or its path: ~/static/app.js. Scheme, host and query do not count"`
	Release string `query:"release" maxLength:"200" description:"Release in whose errors the script is called, as release or version of their metadata has it. Left out: its debug id alone says where it belongs"`
	DebugID string `query:"debug_id" description:"UUID by which debug_ids of an error's metadata names the script; left out: that in the map, if any"`
}

type uploadHeaders struct {
	repeatable
	Encoding string `header:"Content-Encoding" enum:"gzip,identity" description:"How the map is compressed"`
}

type mapsQuery struct {
	Release string `query:"release" maxLength:"200" description:"Only maps of this release"`
	httpapi.Page
}

type mapBody struct {
	ID       string    `json:"id" maxLength:"64"`
	Release  *string   `json:"release" description:"null: the map is found by its debug id alone"`
	Name     string    `json:"name" description:"Of the script: ~ and its path"`
	DebugID  *string   `json:"debug_id" description:"32 hexadecimal digits; null: it has none"`
	SHA256   string    `json:"sha256" description:"Of the map as it was sent, in hexadecimal"`
	Size     int64     `json:"size" description:"Of the map as it was sent, in bytes"`
	Stored   int64     `json:"stored" description:"Bytes that it takes of what the organization may store"`
	Uploaded time.Time `json:"uploaded"`
	Used     string    `json:"used" format:"date" description:"The last day on which errors had calls in it, or that of the upload. It is kept for 90 days after that"`
}

type uploadedBody struct {
	mapBody
	Unchanged bool `json:"unchanged" description:"The same map was there before"`
}

type deletedBody struct {
	ID string `json:"id" maxLength:"64"`
}

func newMapBody(m postgres.SourceMap) mapBody {
	return mapBody{
		ID: m.ID, Release: httpapi.OrNull(m.Release), Name: m.Name, DebugID: httpapi.OrNull(m.DebugID),
		SHA256: fmt.Sprintf("%x", m.Digest), Size: m.Size, Stored: m.Stored,
		Uploaded: m.Uploaded.UTC(), Used: m.Used.Format(time.DateOnly),
	}
}

func (m sourceMapRoutes) upload(c *call) (any, error) {
	release, err := m.maps.AcquireUpload(c.ctx(), c.who.Organization)
	if err != nil {
		return nil, err
	}
	defer release()
	text, err := readMap(c.w, c.r)
	if err != nil {
		return nil, err
	}
	asked := c.r.URL.Query()
	upload := groups.Upload{Release: asked.Get("release"), Name: asked.Get("name"), DebugID: asked.Get("debug_id"), Text: text}
	kept, created, err := m.maps.Upload(c.ctx(), c.request, c.project, upload)
	if wrong, ok := errors.AsType[grouping.Invalid](err); ok && wrong.Field != "" {
		return nil, httpapi.Invalid("?"+wrong.Field, httpapi.CodeInvalidRequest, wrong.Detail, wrong.Fix)
	}
	c.status = http.StatusCreated
	return uploadedBody{newMapBody(kept), !created}, err
}

// readMap reads a map into memory, and no more than it may have.
func readMap(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var source io.Reader = http.MaxBytesReader(w, r.Body, sourcemap.MaxText)
	var text bytes.Buffer
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		text.Grow(int(min(max(r.ContentLength, 0), sourcemap.MaxText)) + bytes.MinRead)
	case "gzip":
		packed, err := gzip.NewReader(source)
		if err != nil {
			return nil, httpapi.Invalid("", httpapi.CodeInvalidRequest, "The body is not in the format gzip.", "Send it as Content-Encoding says.")
		}
		source = io.LimitReader(packed, sourcemap.MaxText+1)
	default:
		return nil, httpapi.NewProblem(http.StatusBadRequest, "unsupported_encoding",
			fmt.Sprintf("The content encoding %.64q is not supported. Send gzip or none.", encoding))
	}
	_, err := text.ReadFrom(source)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge || text.Len() > sourcemap.MaxText {
		return nil, httpapi.Invalid("", "body_too_large", fmt.Sprintf("The map is larger than %d bytes.", sourcemap.MaxText),
			"Split the script into chunks, or leave the text of the sources (sourcesContent) out of the map.")
	}
	if err != nil {
		return nil, httpapi.Invalid("", httpapi.CodeInvalidRequest, "The body could not be read: it ends early, or is not in its format.", "Send it again.")
	}
	return text.Bytes(), nil
}

func (m sourceMapRoutes) list(c *call) (any, error) {
	var after postgres.MapPlace
	limit, err := c.page(&after)
	if err != nil {
		return nil, err
	}
	release := c.r.URL.Query().Get("release")
	if !query.Searchable(release) {
		return nil, query.Invalid("release", release, "Use the name of a release.")
	}
	found, err := m.maps.List(c.ctx(), c.who.Organization, c.project, release, after, limit+1)
	if err != nil {
		return nil, err
	}
	httpapi.WriteList(c.w, c.r, found, limit, newMapBody, postgres.SourceMap.Place)
	return nil, nil
}

func (m sourceMapRoutes) delete(c *call) (any, error) {
	id := c.param("map")
	return deletedBody{id}, m.maps.Delete(c.ctx(), c.request, c.project, id)
}
