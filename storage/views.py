"""SQL views over the tables of the store. Each is one query with a comment: `vina tables` lists them."""

from typing import NamedTuple


class View(NamedTuple):
    """A named query. It may use tables, and views that are listed before it."""

    name: str
    comment: str
    query: str


TITLE_KEY = r"nullif(trim(regexp_replace(regexp_replace(lower(title), '^how to ', ''), '[^\pL\pN]+', ' ', 'g')), '')"
"""SQL of a key that is equal for titles that differ only in case and punctuation; null without letters and digits."""


def narrations_of_shard(source: str, shard: str) -> str:
    """Return a query for the rows of `video_narrations` in one shard of `narrations`; both names are quoted for SQL.

    It reads only that shard and the sources before it, not all narrations.
    """
    return f"""SELECT * FROM narrations WHERE source = {source} AND _shard = {shard}
        AND video_id NOT IN (SELECT video_id FROM narrations WHERE source < {source})"""


VIEWS = (
    View("video_narrations", "the narrations used for each video: those of the first source, by name, that has any", """
        SELECT n.* FROM narrations n
        JOIN (SELECT video_id, min(source) AS source FROM narrations GROUP BY video_id) AS first
          ON first.video_id = n.video_id AND first.source = n.source"""),
    View("label_keep_rate", "share of pseudo-labels kept, by model, round and article", """
        SELECT model_id, round, article_id, count(*) AS labels, count(*) FILTER (kept) AS kept,
               round(100.0 * count(*) FILTER (kept) / count(*), 2) AS kept_percent, round(avg(score), 4) AS mean_score
        FROM pseudo_labels GROUP BY ALL ORDER BY ALL"""),
    View("label_reasons", "why pseudo-labels were kept or dropped, by model and round", """
        SELECT model_id, round, reason, count(*) AS labels, round(avg(score), 4) AS mean_score
        FROM pseudo_labels GROUP BY ALL ORDER BY model_id, round, labels DESC"""),
    View("step_quality", "mean score of each step, by model and round: rank 1 is the best of its round", """
        SELECT p.model_id, p.round, p.article_id, p.step_row, any_value(s.headline) AS headline,
               count(*) AS videos, round(avg(p.score), 4) AS mean_score, round(avg(p.kept::INT), 4) AS kept_share,
               rank() OVER (PARTITION BY p.model_id, p.round ORDER BY avg(p.score) DESC) AS best_rank,
               rank() OVER (PARTITION BY p.model_id, p.round ORDER BY avg(p.score)) AS worst_rank
        FROM pseudo_labels p
        LEFT JOIN steps s ON s.article_id = p.article_id AND s.row = p.step_row
        GROUP BY p.model_id, p.round, p.article_id, p.step_row"""),
    View("round_disagreements", "labels whose segment moved from one round to the next, and by how much", """
        SELECT a.model_id, a.round AS round, b.round AS next_round, a.video_id, a.article_id, a.step_row,
               a.peak_s, b.peak_s AS next_peak_s, abs(a.peak_s - b.peak_s) AS moved_s,
               greatest(0, least(a.end_s, b.end_s) - greatest(a.start_s, b.start_s))
                 / nullif(greatest(a.end_s, b.end_s) - least(a.start_s, b.start_s), 0) AS overlap,
               a.kept, b.kept AS next_kept
        FROM pseudo_labels a
        JOIN pseudo_labels b USING (model_id, video_id, article_id, step_row)
        WHERE b.round = a.round + 1 AND (a.peak_s <> b.peak_s OR a.kept <> b.kept)"""),
    View("presence_reliability", "predicted and true share of steps shown, in bins of presence and of peak", """
        WITH judged AS (SELECT model_id, method, pathway, split, is_shown, unnest(['presence', 'peak']) AS judge,
                               unnest([presence, peak]) AS score FROM presences),
             binned AS (SELECT *, greatest(0, least(9, floor(10 * score)))::INT AS bin FROM judged)
        SELECT model_id, method, pathway, split, judge, bin / 10 AS low, (bin + 1) / 10 AS high, count(*) AS steps,
               round(avg(greatest(0, least(1, score))), 4) AS mean_score, round(avg(is_shown::INT), 4) AS shown
        FROM binned GROUP BY ALL ORDER BY ALL"""),
    View("rejects_by_reason", "number of rejected items, by stage and reason", """
        SELECT stage, reason, count(*) AS items, min(item) AS example
        FROM rejects GROUP BY ALL ORDER BY items DESC, stage, reason"""),
    View("corpus", "number of imported rows and videos, by table and source", """
        SELECT 'videos' AS "table", source AS origin, count(*) AS rows, count(DISTINCT video_id) AS videos
        FROM videos GROUP BY ALL
        UNION ALL SELECT 'narrations', source, count(*), count(DISTINCT video_id) FROM narrations GROUP BY ALL
        UNION ALL SELECT 'articles', source, count(*), NULL FROM articles GROUP BY ALL
        UNION ALL SELECT 'steps', source, count(*), NULL FROM steps GROUP BY ALL
        UNION ALL SELECT 'annotations', benchmark, count(*), count(DISTINCT video_id) FROM annotations GROUP BY ALL
        UNION ALL SELECT 'features', backbone, count(*), count(*) FILTER (second = 0) FROM features GROUP BY ALL
        ORDER BY ALL"""),
    View("missing", "what the corpus lacks, one row per item: videos without features, tasks without articles, ...", """
        WITH narrated AS (SELECT DISTINCT video_id FROM narrations),
             seen AS (SELECT DISTINCT video_id FROM features WHERE second = 0),
             listed AS (SELECT DISTINCT video_id FROM videos),
             annotated AS (SELECT DISTINCT benchmark, video_id FROM annotations),
             grounded AS (SELECT DISTINCT lower(title) AS title FROM articles SEMI JOIN steps USING (article_id))
        SELECT 'narrations without features' AS what, video_id AS item FROM narrated ANTI JOIN seen USING (video_id)
        UNION ALL SELECT 'features without narrations', video_id FROM seen ANTI JOIN narrated USING (video_id)
        UNION ALL SELECT 'videos without features', video_id FROM listed ANTI JOIN seen USING (video_id)
        UNION ALL SELECT benchmark || ' annotations without features', video_id
                  FROM annotated ANTI JOIN seen USING (video_id)
        UNION ALL SELECT benchmark || ' annotations without narrations', video_id
                  FROM annotated ANTI JOIN narrated USING (video_id)
        UNION ALL SELECT benchmark || ' annotations without a row in videos', video_id
                  FROM annotated ANTI JOIN listed USING (video_id)
        UNION ALL SELECT 'videos whose task has no article', video_id FROM videos
                  WHERE article_id IS NOT NULL AND article_id NOT IN (SELECT article_id FROM articles)
        UNION ALL SELECT 'articles without steps, here or under the same title', article_id FROM articles
                  WHERE lower(title) NOT IN (SELECT title FROM grounded)"""),
    View("pairing_winners", "each video's five articles with most votes, and whether its metadata agrees", f"""
        WITH titled AS (SELECT article_id, min({TITLE_KEY}) AS title FROM articles GROUP BY ALL),
             truth AS (SELECT p.video_id, p.article_id, t.title FROM pairs p JOIN titled t USING (article_id)
                       WHERE p.selection = 'metadata')
        SELECT p.encoder, p.video_id, p.rank, p.article_id, p.confidence, p.similarity_margin,
               coalesce(p.article_id = m.article_id OR t.title = m.title, false) AS is_right
        FROM pairs p JOIN truth m USING (video_id) JOIN titled t ON t.article_id = p.article_id
        WHERE p.selection = 'random_top5'"""),
    View("pairing_agreement", "share of videos whose metadata names the first article by votes, or one of five", """
        SELECT encoder, count(*) FILTER (rank = 1) AS videos,
               round(100.0 * count(*) FILTER (rank = 1 AND is_right) / videos, 2) AS top1_percent,
               round(100.0 * count(DISTINCT video_id) FILTER (is_right) / videos, 2) AS top5_percent
        FROM pairing_winners GROUP BY ALL ORDER BY ALL"""),
    View("pairing_by_confidence", "pairing_agreement without the least confident videos, by either margin", """
        WITH placed AS (
            SELECT encoder, is_right,
                   row_number() OVER (PARTITION BY encoder ORDER BY confidence, video_id) - 1 AS by_votes,
                   row_number() OVER (PARTITION BY encoder ORDER BY similarity_margin, video_id) - 1 AS by_similarity,
                   count(*) OVER (PARTITION BY encoder) AS videos
            FROM pairing_winners WHERE rank = 1
        )
        SELECT encoder, left_out AS left_out_percent,
               count(*) FILTER (100 * by_votes >= left_out * videos) AS videos_kept,
               round(100.0 * avg(is_right::INT) FILTER (100 * by_votes >= left_out * videos), 2) AS by_vote_margin,
               round(100.0 * avg(is_right::INT) FILTER (100 * by_similarity >= left_out * videos), 2)
                 AS by_similarity_margin
        FROM placed, (SELECT unnest([0, 10, 25, 50, 75, 90]) AS left_out)
        GROUP BY encoder, left_out HAVING videos_kept > 0 ORDER BY encoder, left_out"""),
    View("hub_titles", "titles by votes: narrations and videos that voted for them, and videos about them", """
        WITH named AS (SELECT article_id, count(*) AS videos FROM pairs WHERE selection = 'metadata' GROUP BY ALL),
             drawn AS (SELECT encoder, article_id, sum(votes)::BIGINT AS narrations,
                              count(*) FILTER (rank = 1) AS videos_won
                       FROM votes WHERE encoder IN (SELECT encoder FROM pairs WHERE selection = 'top1') GROUP BY ALL)
        SELECT d.encoder, d.article_id, any_value(a.title) AS title, d.narrations,
               round(100.0 * d.narrations / sum(d.narrations) OVER (PARTITION BY d.encoder), 2) AS percent_of_all,
               d.videos_won, coalesce(any_value(n.videos), 0) AS videos_about_it
        FROM drawn d JOIN articles a USING (article_id) LEFT JOIN named n USING (article_id)
        GROUP BY d.encoder, d.article_id, d.narrations, d.videos_won
        ORDER BY d.encoder, d.narrations DESC, d.article_id"""),
    View("measured_runs", "completed runs that measured models on all benchmarks, newest first", """
        SELECT run_id, stages, configuration, started_at FROM runs
        WHERE state = 'completed' AND configuration ->> '$.measures' = 'true'
        ORDER BY started_at DESC"""),
    View("ablation_means", "the ablation tables: mean and standard deviation over seeds, beside the paper's number", """
        SELECT ablation, settings, row, variant, measure, count(*) AS seeds, round(avg(value), 2) AS mean,
               round(stddev_samp(value), 2) AS spread, any_value(paper) AS paper
        FROM ablations GROUP BY ALL ORDER BY ALL"""),
    View("annotated_videos", "share of the article's steps, and of the video's length, that is annotated, by video", """
        WITH lengths AS (SELECT benchmark, video_id,
                                coalesce(max(duration_s) FILTER (source = benchmark), max(duration_s)) AS length_s
                         FROM annotations JOIN videos USING (video_id) GROUP BY ALL),
             listed AS (SELECT article_id, count(*) AS steps FROM steps GROUP BY ALL),
             segments AS (SELECT benchmark, split, video_id, article_id, step_id, length_s,
                                 least(end_s, length_s) - greatest(start_s, max(end_s) OVER earlier) AS added_s
                          FROM annotations LEFT JOIN lengths USING (benchmark, video_id) WHERE step_id IS NOT NULL
                          WINDOW earlier AS (PARTITION BY benchmark, video_id, article_id ORDER BY start_s, end_s
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        SELECT s.benchmark, s.split, a.title AS activity, s.article_id, s.video_id, count(*) AS segments,
               count(DISTINCT s.step_id) AS steps, any_value(l.steps) AS steps_of_article,
               count(DISTINCT s.step_id) / any_value(l.steps) AS step_coverage,
               sum(greatest(s.added_s, 0)) / any_value(s.length_s) AS video_coverage
        FROM segments s JOIN articles a USING (article_id) JOIN listed l USING (article_id)
        GROUP BY s.benchmark, s.split, a.title, s.article_id, s.video_id"""),
    View("activity_statistics", "averages over each activity's annotated videos, by split and for all splits", """
        SELECT benchmark, coalesce(split, 'all') AS split, activity, count(*) AS videos, avg(steps) AS steps,
               round(avg(step_coverage), 6) AS step_coverage, round(avg(video_coverage), 6) AS video_coverage,
               count(*) - count(video_coverage) AS videos_of_unknown_length
        FROM annotated_videos GROUP BY GROUPING SETS ((benchmark, activity), (benchmark, split, activity))
        ORDER BY benchmark, split, step_coverage DESC, activity"""),
    View("run_shards", "shards, and the runs that wrote them", """
        SELECT s."table", s.partition, s.shard, s.written_by AS run_id, r.state, r.host, r.code_version, s.written_at,
               s.num_rows, s.fingerprint
        FROM shards s LEFT JOIN runs r ON r.run_id = s.written_by"""),
)  # fmt: skip
