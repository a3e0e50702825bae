package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
)

//go:embed assets
var assetFiles embed.FS

const assetsPath = "/console/assets/"

// An asset is a file of pages. Its address changes with its content, so
// that browsers may keep it forever.
type asset struct {
	path        string
	contentType string
	content     []byte
}

// assets are all assets, by name.
var assets = readAssets()

// contentTypes are those of assets, by file extension.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func readAssets() map[string]asset {
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	read := map[string]asset{}
	for _, file := range files {
		read[file.Name()] = readAsset(file.Name())
	}
	return read
}

func readAsset(name string) asset {
	content, err := assetFiles.ReadFile("assets/" + name)
	contentType := contentTypes[path.Ext(name)]
	if err != nil || contentType == "" {
		panic(fmt.Sprintf("BUG: cannot serve the asset %q: %v", name, err))
	}
	sum := sha256.Sum256(content)
	return asset{path: assetsPath + hex.EncodeToString(sum[:8]) + "/" + name, contentType: contentType, content: content}
}

// assetPath returns the address of a named asset. A missing one is a bug.
func assetPath(name string) (string, error) {
	found, ok := assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return found.path, nil
}

// MountAssets serves the files of every page. Every module mounts it:
// all give the same answers.
func MountAssets(router chi.Router) {
	router.With(httpapi.PublicFile).Get(assetsPath+"{version}/{name}", httpapi.Handle(serveAsset))
}

// serveAsset serves an asset for any version: during an upgrade a page
// may ask for one that this process lacks. Only its own may be cached.
func serveAsset(w http.ResponseWriter, r *http.Request) error {
	found, ok := assets[chi.URLParam(r, "name")]
	if !ok {
		return httpapi.NotFound("asset", r.URL.Path)
	}
	caching := "no-cache"
	if r.URL.Path == found.path {
		caching = fmt.Sprintf("public, max-age=%d, immutable", 365*24*60*60)
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("Cache-Control", caching)
	_, _ = w.Write(found.content)
	return nil
}
