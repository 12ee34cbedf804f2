package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/output"
)

// bucketsOf are the outputs of a Benchmark that the bundle is put into.
func bucketsOf(ctx context.Context, b *v1alpha1.Benchmark, from credentialReader) ([]output.Bucket, error) {
	var buckets []output.Bucket
	for _, o := range b.Spec.Outputs {
		spec := o.S3Spec
		if spec == nil {
			continue
		}
		if spec.Credentials != nil || os.Getenv(outputVariable(string(o.Name), "ACCESSKEY"))+os.Getenv("AWS_ACCESS_KEY_ID") != "" {
			if err := from.mayGo(string(o.Name), spec.Endpoint); err != nil {
				return nil, err
			}
		}
		account, err := from.account(ctx, string(o.Name), spec.Credentials)
		if err != nil {
			return nil, err
		}
		to := output.Bucket{Name: string(o.Name), Bucket: spec.Bucket, Prefix: spec.Prefix, Account: account,
			Settings: map[string]string{"endpoint": spec.Endpoint, "region": spec.Region, "cafile": spec.CAFile}}
		if spec.Addressing == "virtualHost" {
			to.Settings["path_style_access"] = "false"
		}
		if err := to.Check(); err != nil {
			return nil, fmt.Errorf("output %s: %w", o.Name, err)
		}
		buckets = append(buckets, to)
	}
	return buckets, nil
}

// upload puts the bundle into buckets, prints what is missing there and returns the counts of files.
func upload(ctx context.Context, s *streams, buckets []output.Bucket, b *bundle.Bundle) (stats []bundle.OutputStats) {
	for i := range buckets {
		st := buckets[i].Upload(ctx, b, output.Options{})
		warnUndelivered(s, &st, "file", b.Dir)
		stats = append(stats, st)
	}
	return stats
}

// pendingBuckets are those which the bundle has not been put into whole.
func pendingBuckets(buckets []output.Bucket, b *bundle.Bundle) []output.Bucket {
	return slices.DeleteFunc(buckets, func(to output.Bucket) bool {
		return slices.ContainsFunc(b.Run.Outputs, func(st bundle.OutputStats) bool {
			return st.Name == to.Name && st.Delivered > 0 && st.Pending+st.Refused == 0
		})
	})
}
