//! Rendering: the project's own files, repositories that override, and configs that differ.

use sweepctl::matrix::bucket::Bucket;
use sweepctl::workflow::model::{SOURCES, job_of};
use sweepctl::workflow::tree::{File, FileKind};

use super::{SETTINGS, changes, edit, rendered_with, snapshot, source};
use crate::support::{project, run, stderr, stdout, write};

fn same(text: &str) -> String {
    text.to_owned()
}

#[test]
fn the_projects_own_files_are_rendered() {
    let output = run(project(), ["render", "--check"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn rendering_is_the_same_each_time() {
    let first = rendered_with(same, same).expect("it renders");
    assert_eq!(first, rendered_with(same, same).expect("it renders"));
    for file in &first {
        let head = file.text.lines().next().unwrap_or_default();
        let comment = if file.path.ends_with(".js") { "//" } else { "#" };
        let start = format!("{comment} Rendered by sweepctl from workflows-templates/");
        assert!(head.starts_with(&start), "{head}");
        assert!(head.contains("sweepctl render"), "{head}");
        assert!(
            file.text.ends_with('\n') && !file.text.ends_with("\n\n"),
            "{}",
            file.path
        );
        assert!(!file.text.contains("[=") && !file.text.contains("[%"), "{}", file.path);
    }
}

#[test]
fn check_shows_drift_and_unknown_files() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(run(folder.path(), ["render"]).status.success());
    assert!(run(folder.path(), ["render", "--check"]).status.success());
    let path = ".github/workflows/run-sweep.yml";
    let text = std::fs::read_to_string(folder.path().join(path)).expect("it was rendered");
    write(
        folder.path(),
        path,
        edit(
            &text,
            "cancel-in-progress: ${{ github.run_attempt == 1 }}",
            "cancel-in-progress: true",
        ),
    );
    write(folder.path(), ".github/workflows/own.yml", "on: push\n");
    std::fs::remove_file(folder.path().join(".github/workflows/e2e-tests.yml")).expect("it was rendered");
    let output = run(folder.path(), ["render", "--check"]);
    assert_eq!(output.status.code(), Some(1));
    let diff = stdout(&output);
    assert!(
        diff.contains("-  cancel-in-progress: true\n+  cancel-in-progress: ${{ github.run_attempt == 1 }}\n"),
        "{diff}"
    );
    let said = stderr(&output);
    for part in [
        "`.github/workflows/run-sweep.yml` is not what it is rendered from",
        "`.github/workflows/e2e-tests.yml` is not there",
        "nothing renders `.github/workflows/own.yml`",
        "name it in `unmanaged`",
        "3 problems",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // It only looked.
    assert!(!folder.path().join(".github/workflows/e2e-tests.yml").exists());
    let output = run(folder.path(), ["render"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&run(folder.path(), ["render", "--check"]));
    assert!(said.contains("own.yml") && !said.contains("problems"), "{said}");
}

#[test]
fn render_writes_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(run(folder.path(), ["render", "--out", "there"]).status.success());
    assert!(folder.path().join("there/.github/workflows/run-sweep.yml").exists());
    assert!(!folder.path().join(".github").exists());
    assert!(
        run(folder.path(), ["render", "--out", "there", "--check"])
            .status
            .success()
    );
}

/// Long files are read by nobody.
#[test]
fn rendered_files_are_short() {
    let rendered = rendered_with(same, same).expect("it renders");
    let lines: Vec<(usize, &str)> = rendered
        .iter()
        .map(|file| (file.text.lines().count(), file.path.as_str()))
        .collect();
    let longest = lines.iter().max().expect("files");
    assert!(longest.0 <= 700, "{longest:?}");
    let all: usize = lines.iter().map(|(count, _)| count).sum();
    assert!(all <= 2500, "{all} lines: {lines:?}");
}

/// A build is taken from a cache under a hash of what it is made of: a file that is left out would leave an old binary.
#[test]
fn what_is_compiled_in_is_part_of_the_cache_key() {
    let mut globs = globset::GlobSetBuilder::new();
    for source in SOURCES {
        globs.add(globset::Glob::new(source).expect("a glob"));
    }
    let globs = globs.build().expect("globs");
    let include = regex::Regex::new(r#"include_(?:str|bytes)!\((?:concat!\()?\s*"([^"]+)""#).expect("a pattern");
    let mut open = vec![project().join("src")];
    let (mut found, mut missed) = (0, Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for included in include.captures_iter(&text).map(|captures| captures[1].to_owned()) {
                let file = std::path::absolute(path.with_file_name(&included)).expect("a path");
                let parts = file.components().fold(std::path::PathBuf::new(), |mut parts, part| {
                    match part {
                        std::path::Component::ParentDir => drop(parts.pop()),
                        part => parts.push(part),
                    }
                    parts
                });
                let file = parts.strip_prefix(project()).expect("below the project").to_owned();
                found += 1;
                // The pages change no step of a workflow.
                if !file.starts_with("docs") && !globs.is_match(&file) && !globs.is_match(file.join("x")) {
                    missed.push(file);
                }
            }
        }
    }
    assert!(found >= 15, "{found}");
    assert_eq!(missed, Vec::<std::path::PathBuf>::new());
}

/// A repository replaces one whole workflow and one partial, and adds a workflow of its own.
#[test]
fn a_repository_overrides_templates() {
    let folder = tempfile::tempdir().expect("a folder");
    let built_in = rendered_with(same, same).expect("it renders");
    let collect =
        std::fs::read_to_string(project().join("workflows-templates/partials/collect.yml")).expect("the file");
    let collect = edit(
        &collect,
        "  path: collected/agg_*.json",
        "  path: collected/agg_*.json\n          retention-days: 400",
    );
    write(folder.path(), "workflows-templates/partials/collect.yml", collect);
    write(
        folder.path(),
        "workflows-templates/nightly.yml",
        "[% import 'partials/steps.yml' as steps %]\nname: Nightly\non:\n  schedule:\n    - cron: '0 3 * * *'\n\n\
         permissions: {}\n\njobs:\n  sweep:\n    permissions: [= permissions('e2e-tests', 'load', 'benchmark') =]\n    \
         uses: ./.github/workflows/e2e-tests.yml\n    with:\n      generate-cli-command: full-sweep --single-node\n",
    );
    write(
        folder.path(),
        "configs/workflows.yaml",
        edit(SETTINGS, "  - ci\n", "  - nightly\n"),
    );
    let output = run(folder.path(), ["render"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let after: Vec<_> = built_in
        .iter()
        .map(|file| file.path.clone())
        .chain([".github/workflows/nightly.yml".to_owned()])
        .filter_map(|path| {
            let text = std::fs::read_to_string(folder.path().join(&path)).ok()?;
            Some(sweepctl::workflow::render::Rendered { path, text })
        })
        .collect();
    snapshot("workflows_overridden_template", &changes(&built_in, &after));
}

#[test]
fn a_template_that_is_wrong_is_said_at_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = std::fs::read_to_string(project().join("workflows-templates/partials/steps.yml")).expect("the file");
    write(
        folder.path(),
        "workflows-templates/partials/steps.yml",
        edit(&steps, "uses('actions/checkout')", "uses('actions/chekout')"),
    );
    write(
        folder.path(),
        "workflows-templates/collect-evals.yml",
        "name: x\non: [= nothing =]\n",
    );
    write(folder.path(), "workflows-templates/ci.yml", "jobs:\n  [% if %]\n");
    let said = stderr(&run(folder.path(), ["render"]));
    assert!(said.contains("workflows-templates/ci.yml:2:"), "{said}");
    std::fs::remove_file(folder.path().join("workflows-templates/ci.yml")).expect("it is there");
    let output = run(folder.path(), ["render"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    for part in [
        "`actions` pins no `actions/chekout` (did you mean `actions/checkout`?)",
        "workflows-templates/partials/steps.yml:",
        "workflows-templates/collect-evals.yml:2:",
        "undefined value",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        !folder.path().join(".github").exists(),
        "nothing is written of a set that is not whole"
    );
    write(folder.path(), "workflows-templates/run-swep.yml", "name: x\n");
    let said = stderr(&run(folder.path(), ["render"]));
    assert!(
        said.contains("nothing renders the template `run-swep.yml`") && said.contains("did you mean `run-sweep.yml`?"),
        "{said}"
    );
}

/// Labels reach the concurrency group and the verdict's name, and nothing else of the files.
#[test]
fn labels_are_rendered_into_the_concurrency_group() {
    let before = rendered_with(same, same).expect("it renders");
    let labels = |text: &str| {
        let text = edit(
            text,
            "  sweep-enabled: { trim-conc: true }",
            "  \"o'clock \\\"now\\\"\": { trim-conc: true }",
        );
        edit(
            &text,
            "  agentx-fast: { agentx-fast: true",
            "  quick: { agentx-fast: true",
        )
    };
    let after = rendered_with(same, labels).expect("it renders");
    snapshot("workflows_variant_labels", &changes(&before, &after));
}

/// A fleet of its own: no secrets, other limits, steps and jobs of its own, and an announcement.
#[test]
fn settings_add_steps_jobs_and_an_announcement() {
    let before = rendered_with(same, same).expect("it renders");
    let settings = |text: &str| {
        let text = edit(
            text,
            "launch-secrets: [HF_TOKEN]",
            "launch-secrets: [HF_TOKEN, NGC_API_KEY]",
        );
        let text = edit(
            &text,
            "  comment: { pull-requests: write }",
            "  comment: { pull-requests: write }\n  chart: {}",
        );
        let text = edit(&text, "    ci: 60", "    ci: 60\n    chart: 7");
        text + "ingest: { repository: example/results, event-type: sweep-done, secret: INGEST_TOKEN }
extra-steps:
  before-launch:
    - name: \"Mount: the cache\"
      run: |
        set -x
        mount \"$CACHE\"
      env: { CACHE: /mnt/cache }
  after-launch:
    - { name: Keep the profile, uses: actions/upload-artifact, with: { name: 'profile_${{ github.job }}', path: profile } }
extra-jobs:
  chart:
    name: Chart
    needs: [collect]
    if: ${{ !cancelled() && needs.collect.outputs.rows > 0 }}
    steps:
      - { name: Draw, run: exec draw }
"
    };
    let after = rendered_with(settings, same).expect("it renders");
    snapshot("workflows_variant_additions", &changes(&before, &after));
}

/// A repository that takes the binary from a release, and sweeps on another branch.
#[test]
fn settings_choose_the_release_the_branch_and_the_runner() {
    let before = rendered_with(same, same).expect("it renders");
    let settings = |text: &str| {
        let text = edit(text, "  - ci\n  - release\n", "");
        let text = edit(
            &text,
            "  from: build",
            "  from: release\n  repository: sweepctl/sweepctl\n  version: v1.2.0",
        );
        let text = edit(&text, "default-branch: main", "default-branch: \"release/2026 #1\"");
        let text = edit(&text, "hosted-runner: ubuntu-24.04", "hosted-runner: ubuntu-24.04-arm");
        let text = edit(&text, "    decide: 45\n", "");
        let cache = text
            .lines()
            .find(|line| line.contains("Swatinem/rust-cache:"))
            .expect("a pin")
            .to_owned();
        edit(&text, &cache, "")
    };
    let after = rendered_with(settings, same).expect("it renders");
    snapshot("workflows_variant_release", &distinct(&changes(&before, &after)));
}

/// Each changed line once, with the number of times that it changed.
fn distinct(diff: &str) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for line in diff.lines().filter(|line| line.starts_with(['+', '-', 'g'])) {
        match counts.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => counts.push((line, 1)),
        }
    }
    counts
        .iter()
        .map(|(line, count)| format!("{count:3} {line}\n"))
        .collect()
}

#[test]
fn wrong_settings_are_all_said() {
    let settings = |text: &str| {
        let text = edit(text, "  - ci\n", "  - ../ci\n");
        let text = edit(
            &text,
            "version: v7.0.1, sha: 3d3c42e5aac5ba805825da76410c181273ba90b1",
            "version: v7.0.1, sha: v7",
        );
        let text = edit(
            &text,
            "  benchmark: { contents: read }",
            "  benchmark: { content: read }",
        );
        let text = edit(&text, "  load: {}", "  load: { contents: admin }");
        let text = edit(&text, "  default: 15", "  default: 10000");
        let text = edit(&text, "  from: build", "  from: build\n  version: v1");
        edit(
            &text,
            "launch-secrets: [HF_TOKEN]",
            "launch-secrets: [GITHUB_TOKEN, 'A B']\nextra-stepz: {}",
        )
    };
    let problems = rendered_with(settings, same).expect_err("it is wrong").to_string();
    for part in [
        "`../ci` is not the name of a workflow",
        "`v7` is no commit",
        "`content` is no scope of a token",
        "did you mean `contents`?",
        "`admin` is not a value of `contents`",
        "`default` is 10000, the most is 360",
        "`version` cannot stand here",
        "`GITHUB_TOKEN` is GitHub's own",
        "`A B` is not the name of a secret",
        "unknown field `extra-stepz`",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
}

#[test]
fn a_job_without_permissions_is_refused() {
    let settings = |text: &str| edit(text, "  verdict: { checks: read }\n", "");
    let problems = rendered_with(settings, same).expect_err("it is wrong").to_string();
    assert!(
        problems.contains("`permissions` does not say what `verdict` may do"),
        "{problems}"
    );
}

/// The jobs of a rendered file, each with what it waits for.
fn needs_of(path: &str) -> Vec<(String, Vec<String>)> {
    let rendered = rendered_with(same, same).expect("it renders");
    let file = rendered
        .iter()
        .find(|file| file.path.ends_with(path))
        .expect("the file");
    let text = source(path, &file.text);
    let file = File::parse(&text, FileKind::Workflow).expect("it is YAML");
    file.jobs()
        .map(|job| {
            let needs = job.needs().into_iter().map(str::to_owned).collect();
            (job.id.text().to_owned(), needs)
        })
        .collect()
}

#[test]
fn every_bucket_has_a_job_that_is_gated_collected_and_judged() {
    for (path, gate) in [("run-sweep.yml", "canary"), ("e2e-tests.yml", "decide")] {
        let jobs = needs_of(path);
        let needs = |id: &str| {
            let found = jobs.iter().find(|(known, _)| known == id);
            &found.unwrap_or_else(|| panic!("{path} has no job `{id}`")).1
        };
        for bucket in Bucket::ALL {
            let job = job_of(*bucket).job.to_owned();
            assert!(needs(&job).contains(&gate.to_owned()), "{path}: {job}");
            for waiting in ["collect", "verdict"] {
                assert!(
                    needs(waiting).contains(&job),
                    "{path}: {waiting} does not wait for {job}"
                );
            }
        }
        // The verdict waits for everything but the comment, which waits for the verdict.
        let judged = needs("verdict");
        let others = jobs
            .iter()
            .map(|(id, _)| id)
            .filter(|id| *id != "verdict" && *id != "comment");
        let missed: Vec<&String> = others.filter(|id| !judged.contains(id)).collect();
        assert_eq!(missed, Vec::<&String>::new(), "{path}");
    }
    let comment = &needs_of("run-sweep.yml").pop().expect("a last job");
    assert_eq!(comment.0, "comment");
    assert!(comment.1.contains(&"verdict".to_owned()));
}

#[test]
fn a_secret_may_have_another_variable() {
    let settings = |secrets: &'static str| move |text: &str| edit(text, "launch-secrets: [HF_TOKEN]", secrets);
    let map = "launch-secrets: { HF_TOKEN: SWEEP_TOKEN, OTHER: SWEEP_TOKEN }\nenv: { HF_HUB_CACHE: /hub }";
    let files = rendered_with(settings(map), same).expect("it renders");
    let text: String = files.iter().map(|file| file.text.as_str()).collect();
    assert!(
        text.contains("          HF_TOKEN: ${{ secrets.SWEEP_TOKEN }}\n          OTHER: ${{ secrets.SWEEP_TOKEN }}\n")
    );
    // What calls another workflow hands on each secret once, by its own name.
    assert!(text.contains("    secrets:\n      SWEEP_TOKEN: ${{ secrets.SWEEP_TOKEN }}\n"));
    assert!(!text.contains("secrets.HF_TOKEN"));
    let wrong = "launch-secrets: { PATH: A, GITHUB_ENV: B }\nenv: { LD_PRELOAD: x }";
    let problems = rendered_with(settings(wrong), same).expect_err("refused").to_string();
    for name in ["PATH", "GITHUB_ENV", "LD_PRELOAD"] {
        assert!(problems.contains(&format!("the variable `{name}`")), "{problems}");
    }
}

/// A job that took another bucket's envelopes would run, and what was planned would not.
#[test]
fn every_sweep_job_reads_its_own_bucket() {
    for name in ["run-sweep.yml", "e2e-tests.yml"] {
        let text = std::fs::read_to_string(project().join(".github/workflows").join(name)).expect("a file");
        let jobs: Vec<&str> = text.split("\n  sweep-").skip(1).collect();
        assert_eq!(jobs.len(), 12, "{name}");
        for job in jobs {
            let bucket = job.split_once("bucket: ").expect("a bucket").1;
            let bucket = bucket.split_whitespace().next().expect("its name");
            let of_job = job.split("\n\n").next().expect("the job");
            for (suffix, least) in [("_jobs", 1), ("_shards", 1), ("_inputs", 2)] {
                let read = of_job.split("needs.decide.outputs.").skip(1);
                let names = read.map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next());
                let names: Vec<&str> = names
                    .flatten()
                    .filter(|n| n.ends_with(suffix) && *n != "canary_jobs")
                    .collect();
                assert!(names.len() >= least, "{name} {bucket}: {names:?}");
                assert!(
                    names.iter().all(|n| *n == format!("{bucket}{suffix}")),
                    "{name} {bucket}: {names:?}"
                );
            }
        }
    }
}
