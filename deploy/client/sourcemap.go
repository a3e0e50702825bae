package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// A SourceMap is one of a project's.
type SourceMap struct {
	ID        string `json:"id"`
	Release   string `json:"release"`
	Name      string `json:"name"`
	DebugID   string `json:"debug_id"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
	Uploaded  string `json:"uploaded"`
	Used      string `json:"used"`
	Unchanged bool   `json:"unchanged"`
}

// SourceMapsPath is that of a project's source maps.
func SourceMapsPath(project string) string {
	return "/projects/" + url.PathEscape(project) + "/source-maps"
}

// UploadSourceMap uploads the map of a script, compressed.
func (c *Client) UploadSourceMap(ctx context.Context, key, project string, m SourceMap, text []byte) (SourceMap, error) {
	var body bytes.Buffer
	w, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if _, err := w.Write(text); err != nil {
		return m, fmt.Errorf("cannot compress a source map: %w", err)
	}
	if err := w.Close(); err != nil {
		return m, fmt.Errorf("cannot compress a source map: %w", err)
	}
	query := url.Values{"name": {m.Name}}
	for name, value := range map[string]string{"release": m.Release, "debug_id": m.DebugID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	header := apiKey(key)
	header["Content-Type"], header["Content-Encoding"] = "application/json", "gzip"
	return call[SourceMap](ctx, c, Request{Method: http.MethodPost, Path: SourceMapsPath(project) + "?" + query.Encode(), Header: header, Body: body.Bytes()})
}

// DeleteSourceMap deletes a map.
func (c *Client) DeleteSourceMap(ctx context.Context, key, project, id string) error {
	_, err := call[struct{}](ctx, c, Request{Method: http.MethodDelete, Path: SourceMapsPath(project) + "/" + url.PathEscape(id), Header: apiKey(key)})
	return err
}
