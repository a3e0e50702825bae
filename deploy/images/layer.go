package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A file of an image. Its name begins without a slash; a folder's
// ends with one.
type file struct {
	name    string
	content []byte
	mode    int64 // 0: readable for everybody
}

// layer packs files with their folders. Only names, contents and modes
// count: the owner is root, the time zero.
func layer(files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, f := range withFolders(files) {
		if err := write(writer, f); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressedCaching)
}

func write(writer *tar.Writer, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: cmp.Or(f.mode, 0o444)}
	if strings.HasSuffix(f.name, "/") {
		header.Typeflag, header.Mode = tar.TypeDir, cmp.Or(f.mode, 0o755)
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(f.content)
	return err
}

// withFolders adds the folders, each before its contents.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		for folder := path.Dir(strings.TrimSuffix(f.name, "/")); folder != "."; folder = path.Dir(folder) {
			if _, given := all[folder+"/"]; !given {
				all[folder+"/"] = file{name: folder + "/"}
			}
		}
		all[f.name] = f
	}
	return slices.SortedFunc(maps.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}
