package ui

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

//go:embed assets/weir.css
var stylesheet []byte

//go:embed assets/weir.svg
var icon []byte

const assetsPath = "/console/assets/"

// stylesheetPath changes with the stylesheet, so that browsers may keep it for ever.
func stylesheetPath() string {
	sum := sha256.Sum256(stylesheet)
	return assetsPath + hex.EncodeToString(sum[:8]) + "/weir.css"
}

func iconPath() string { return assetsPath + "weir.svg" }

// MountAssets serves what every page refers to. Every module mounts it: any of them gives the same answers.
func MountAssets(router chi.Router) {
	router.Get(assetsPath+"{version}/weir.css", serveStylesheet)
	router.Get(iconPath(), func(w http.ResponseWriter, _ *http.Request) {
		serveAsset(w, "image/svg+xml", "public, max-age=86400", icon)
	})
}

// serveStylesheet gives the stylesheet for any version: while modules are being upgraded, a page may ask for one that
// this process does not have. Only its own may be kept.
func serveStylesheet(w http.ResponseWriter, r *http.Request) {
	caching := "no-cache"
	if r.URL.Path == stylesheetPath() {
		caching = fmt.Sprintf("public, max-age=%d, immutable", 365*24*60*60)
	}
	serveAsset(w, "text/css; charset=utf-8", caching, stylesheet)
}

func serveAsset(w http.ResponseWriter, contentType, caching string, content []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", caching)
	_, _ = w.Write(content)
}
