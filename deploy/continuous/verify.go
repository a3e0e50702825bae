package continuous

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A verifier restores base backups.
type verifier struct{ *site }

// due returns the base backup to restore: the newest, if it never
// was, or not for long. In another stretch, a newer one comes first.
func (b verifier) due(bases []Base, stretch string) (base Base, due bool) {
	if len(bases) == 0 {
		return base, false
	}
	base = bases[len(bases)-1]
	return base, base.Stretch == stretch && (base.Verified == nil || time.Since(base.Verified.At) >= b.Verify)
}

// verify restores a base backup with all log that follows, looks at
// what came back, and notes it.
func (b verifier) verify(ctx context.Context, base Base) (err error) {
	begun := time.Now()
	_, _, archived := b.progress.now()
	dir := b.folder.path("scratch")
	if err := errors.Join(os.RemoveAll(dir), b.server.account.Own(dir)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := recovery{folder: b.folder, base: base, data: filepath.Join(dir, "data"), account: b.server.account}
	if r.bin, err = binaries(b.PostgresBin, base.Major); err != nil {
		return err
	}
	if err := r.extract(); err != nil {
		return fmt.Errorf("the base backup %s is damaged: %w", base.Name, err)
	}
	if err := b.compare(ctx, r); err != nil {
		return fmt.Errorf("the base backup %s is damaged: %w", base.Name, err)
	}
	if err := r.prepare(time.Time{}, io.Discard); err != nil {
		return err
	}
	found, err := b.inspect(ctx, r, archived.LSN)
	if err != nil {
		return fmt.Errorf("the base backup %s can't be restored: %w", base.Name, err)
	}
	found.At, found.Seconds = time.Now().UTC(), time.Since(begun).Seconds()
	base.Verified = &found
	b.logger.InfoContext(ctx, "restored the newest base backup, and found it whole", slog.String("base", base.Name),
		slog.Duration("took", time.Since(begun)))
	return base.keep(b.folder.base(base.Name))
}

// compare compares the files with the digests of the manifest. The log
// is elsewhere: the restore reads it.
func (b verifier) compare(ctx context.Context, r recovery) error {
	return run(r.account.Command(ctx, r.data, filepath.Join(r.bin, "pg_verifybackup"), "--no-parse-wal", "--exit-on-error",
		"--manifest-path="+filepath.Join(r.data, manifestFile), r.data))
}

// extract unpacks the base backup.
func (r recovery) extract() error {
	if err := r.account.Own(r.data); err != nil {
		return err
	}
	dir := r.folder.base(r.base.Name)
	from, err := unzip(filepath.Join(dir, tarFile))
	if err != nil {
		return err
	}
	defer from.Close()
	if err := untar(from, r.data); err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.data, manifestFile), manifest, 0o600); err != nil {
		return err
	}
	return r.account.ChownAll(r.data)
}

// untar writes the directories and files of an archive below a directory.
func untar(from io.Reader, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from) // the digest is at the end
			return err
		}
		if err != nil {
			return err
		}
		if err := untarOne(root, header, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func untarOne(root *os.Root, header *tar.Header, from io.Reader) error {
	name := filepath.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o700); !errors.Is(err, os.ErrExist) {
			return err
		}
		return nil
	case tar.TypeReg:
		to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return errors.Join(err, to.Close())
	}
	return fmt.Errorf("it is neither a file nor a directory")
}

// amcheck compares indexes with their tables.
func amcheck(ctx context.Context, r recovery, socket, superuser string) *exec.Cmd {
	return r.account.Command(ctx, r.data, filepath.Join(r.bin, "pg_amcheck"), "--all", "--install-missing", "--heapallindexed", "--no-password",
		"--host="+socket, "--username="+superuser)
}
