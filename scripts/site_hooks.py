"""Hooks of MkDocs: adds generated pages, and pages from outside of docs/, to the site."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from scripts import reference_pages, site_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = dict(reference_pages.pages())
    for path in (*site_pages.PROJECT_PAGES, *site_pages.OTHER_PAGES):
        made[site_pages.page_of(path)] = (site_pages.ROOT / path).read_text()
    for folder in site_pages.LISTED_FOLDERS:
        made[site_pages.page_of(folder)] = site_pages.folder_page(folder)
    for path in sorted(site_pages.linked_sources()):
        made[site_pages.page_of(path)] = site_pages.source_page(path)
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    page.meta["search"] = site_pages.search_settings(page.file.src_uri)
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    path = site_pages.file_of(page.file.src_uri)
    return markdown if path is None else site_pages.with_site_links(markdown, path)
