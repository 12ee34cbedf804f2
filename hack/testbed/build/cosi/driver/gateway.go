package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// gateway is a versitygw, as its administrator.
type gateway struct {
	endpoint    string
	region      string
	key, secret string
	s3          *minio.Client
	policies    sync.Mutex // a policy is read, changed and written
}

func newGateway(endpoint, region, key, secret string) (*gateway, error) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" {
		return nil, errors.Join(err, fmt.Errorf("%q is not the URL of a server", endpoint))
	}
	client, err := minio.New(at.Host, &minio.Options{Creds: credentials.NewStaticV4(key, secret, ""),
		Secure: at.Scheme == "https", Region: region, BucketLookup: minio.BucketLookupPath, MaxRetries: 1})
	return &gateway{endpoint: endpoint, region: region, key: key, secret: secret, s3: client}, err
}

// account is what versitygw's administration takes.
type account struct {
	XMLName xml.Name `xml:"Account"`
	Access  string
	Secret  string
	Role    string
}

// secretOf is the secret key of an account: a function of its name, so that a repeated request has the same answer.
func (g *gateway) secretOf(name string) string {
	h := hmac.New(sha256.New, []byte(g.secret))
	h.Write([]byte(name))
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// grant makes an account, if there is none, and lets it do anything with a bucket and its objects.
func (g *gateway) grant(ctx context.Context, bucket, name string) error {
	if _, err := g.s3.GetBucketPolicy(ctx, bucket); err != nil { // before there is an account that nobody would remove
		return err
	}
	body, err := xml.Marshal(account{Access: name, Secret: g.secretOf(name), Role: "user"})
	if err != nil {
		return err
	}
	if err := g.administer(ctx, "create-user", body, "XAdminUserExists"); err != nil {
		return err
	}
	return g.changePolicy(ctx, bucket, func(names []string) []string {
		if slices.Contains(names, name) {
			return names
		}
		return append(names, name)
	})
}

// revoke removes an account and its right to a bucket; either may be gone.
func (g *gateway) revoke(ctx context.Context, bucket, name string) error {
	err := g.changePolicy(ctx, bucket, func(names []string) []string {
		return slices.DeleteFunc(names, func(n string) bool { return n == name })
	})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchBucket {
		return err
	}
	return g.administer(ctx, "delete-user?access="+url.QueryEscape(name), nil, "XAdminUserNotFound")
}

type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Effect    string
	Principal principal
	Action    []string
	Resource  []string
}

type principal struct{ AWS []string }

// changePolicy changes the accounts that a bucket's policy lets in.
func (g *gateway) changePolicy(ctx context.Context, bucket string, change func([]string) []string) error {
	g.policies.Lock()
	defer g.policies.Unlock()
	text, err := g.s3.GetBucketPolicy(ctx, bucket)
	if err != nil {
		return err
	}
	var names []string
	if text != "" {
		var p policy
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return fmt.Errorf("policy of bucket %s: %w", bucket, err)
		}
		for _, s := range p.Statement {
			names = append(names, s.Principal.AWS...)
		}
	}
	if names = change(names); len(names) == 0 {
		return g.s3.SetBucketPolicy(ctx, bucket, "")
	}
	arn := "arn:aws:s3:::" + bucket
	changed, err := json.Marshal(policy{Version: "2012-10-17", Statement: []statement{{Effect: "Allow",
		Principal: principal{names}, Action: []string{"s3:*"}, Resource: []string{arn, arn + "/*"}}}})
	if err != nil {
		return err
	}
	return g.s3.SetBucketPolicy(ctx, bucket, string(changed))
}

// administer sends a request of versitygw's administration. The errors of codes fine are none.
func (g *gateway) administer(ctx context.Context, what string, body []byte, fine ...string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, g.endpoint+"/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	r = signer.SignV4(*r, g.key, g.secret, "", g.region)
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil || answer.StatusCode < 300 {
		return err
	}
	var e struct{ Code, Message string }
	if err := xml.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	if slices.Contains(fine, e.Code) {
		return nil
	}
	return fmt.Errorf("%s: %s (%s)", answer.Status, e.Message, e.Code)
}
